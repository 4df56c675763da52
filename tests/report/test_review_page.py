"""The page of a review in a browser, from a document that is made up."""

import re
from itertools import product

import pytest

from policygen.model.audits import Finding, Unreachable
from policygen.model.plans import Action
from policygen.model.results import Interval, PointRatio, RejectedVariant, ScoredVariant
from policygen.model.reviews import (
    UNBOUND,
    Evidence,
    HeaderDiff,
    Leak,
    Review,
    ReviewedEntry,
    Uncovered,
)
from policygen.model.selection import Differing, Effect, EntryPlace, Wrong
from policygen.model.trees import Cub
from policygen.report.pages import COMMENT, side_by_side
from policygen.report.pages import render_page as render
from policygen.report.review_facts import annotations
from policygen.textdiff import unified
from tests.browser import faults, opened, overflow
from tests.report.structure import Structure, check_links
from tests.report.test_coverage_page import HOSTILE, LONG
from tests.report.test_sass import different, row
from tests.report.test_sass import document as sass
from tests.tiers import sampled

CUB = Cub(root="/tree", version="3.0.1", dialect="specializations", found="--cub")
PATH = "cub/device/dispatch/tuning/tuning_scan.cuh"
PLACE = {"header": "tuning_scan.cuh", "family": "sm90_tuning"}
WORKLOAD = {"benchmark": "cub.bench.scan.exclusive.sum", "workload": {"T": HOSTILE}}
DIFF = unified(
    PATH,
    b"".join(b"// line %d\n" % n for n in range(40)) + b'#define X "</td>" 7\n',
    b"".join(b"// line %d\n" % n for n in range(40) if n != 20) + b"template <int N> struct a;\n",
)


def differing(arch="sm90", name=HOSTILE):
    values = {"before": {"items": 24, "load": HOSTILE}, "after": {"items": 20, "load": "LOAD_CA"}}
    workload = {**WORKLOAD, "workload": {"T": name}}
    return Differing(**workload, arch=arch, **values, changed=("items", "load"))


def evidence(count=4):
    runtime = tuple(
        PointRatio(subbench="base", point={"Elements": str(n), "x": HOSTILE}, weight=1, ratio=ratio)
        for n, ratio in enumerate([1.2, 1.001, 0.93, 3.5] * (count // 4))
    )
    scored = ScoredVariant(
        variant="ipt_20",
        score=1.1,
        min=0.93,
        mean=1.1,
        max=3.5,
        interval=Interval(low=1.05, high=1.15),
        worst=runtime[2],
    )
    return Evidence(
        **WORKLOAD, scored=scored, runtime=runtime, databases=("a.db",), gpu=HOSTILE, ctk="13",
        cccl="3.0", rejected=(RejectedVariant(variant=HOSTILE, score=1.05, reason=HOSTILE),),
    )  # fmt: skip


def entry(**fields):
    given = {
        "change": "changed",
        "place": EntryPlace(**PLACE, args=(HOSTILE, LONG), line=7),
        "arch": "sm90",
        "kind": "explicit",
        "before": {"items": 24, "threads": 128},
        "after": {"items": 20, "threads": 128, "load": HOSTILE},
        "variant": "ipt_20",
        "scores": (1.1, 0.93, 1.1, 3.5),
        "reached": (differing(),),
        "evidence": (evidence(),),
    }
    return ReviewedEntry(**{**given, **fields})


def bad_entry():
    place = {**PLACE, "args": ("int",), "line": 9}
    finding = Finding(
        rule="threads-over-limit", severity="error", column=1, message=HOSTILE, path=PATH, text="",
        width=1, **place,
    )  # fmt: skip
    lost = Unreachable(**place, cause="key", reason="100% of, that: is\nlost")
    return entry(
        change="added",
        place=EntryPlace(**place),
        arch="sm100",
        before=None,
        inherits=(None, HOSTILE),
        reached=(differing("sm100"), differing("sm100", "I8")),
        evidence=(),
        findings=(finding,),
        unreachable=lost,
    )


def review(*entries, **fields):
    given = {
        "cub": CUB,
        "base": HOSTILE,
        "toolchain": "nvcc 13.2",
        "archs": ("sm90", "sm100"),
        "entries": entries,
        "compared": 480,
        "diffs": (HeaderDiff(path=PATH, diff=DIFF),),
        "commands": ("policygen review --base 'a b'",),
        "remarks": (HOSTILE,),
    }
    return Review(**{**given, **fields})


def whole():
    action = Action(**WORKLOAD, decision="reject", reason=HOSTILE, gpu="H200", ctk="13", cccl="3.0")
    wrong = Wrong(**WORKLOAD, arch="sm90", reason="it gets items 24")
    effect = Effect(
        cub=CUB, toolchain="nvcc", headers=("tuning_scan.cuh",), archs=("sm90",), compared=480,
        changed=(), wrong=(wrong,),
    )  # fmt: skip
    compared = sass(row("sm90", different=1), row("sm80"), different=(different(),))
    return review(
        entry(),
        bad_entry(),
        others=(differing(),),
        actions=(action,),
        effect=effect,
        sass=compared,
    )


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "review.html"
    path.write_text(render(whole(), "html"))
    return path


def open_all(shown):
    shown.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"),
    sampled(product((400, 1200), ("light", "dark")), (400, "dark")),
)
def test_it_is_readable_everywhere(page, width, scheme):
    with opened(page, width=width, scheme=scheme) as (shown, said):
        open_all(shown)
        assert overflow(shown) <= 0
        assert faults(shown) == []
        assert said == []
        assert shown.locator("script").count() == 1


@pytest.mark.browser
@pytest.mark.parametrize("width", [1000, 1200])
def test_the_first_screen_answers_the_four_questions(page, width):
    with opened(page, width=width) as (shown, _):
        cards = shown.locator(".card")
        assert cards.locator("h2").all_text_contents() == [
            "What changed",
            "Why",
            "Is it proven",
            "What could get worse",
        ]
        assert cards.locator("strong").all_text_contents() == [
            "2",
            "1.100",
            "0 of 3",
            "1 of 4",
        ]
        assert cards.locator(".answer").all_text_contents() == [
            "2 entries: 1 changed, 1 added",
            "1.100 is the score",
            "0 of 3 proofs hold: no",
            "1 of 4 runtime workloads slower",
        ]
        assert len({card.bounding_box()["height"] for card in cards.all()}) == 1
        for card in cards.all():
            number, title = (card.locator(one).bounding_box()["y"] for one in ("strong", "h2"))
            assert number < title
        assert cards.last.bounding_box()["y"] == cards.first.bounding_box()["y"] < 400
        assert shown.get_by_text("Not to be merged").bounding_box()["y"] < 900


def test_each_row_has_an_address_of_its_own():
    page = Structure(render(whole(), "html"))
    check_links(page)
    ids = page.of("id")
    for kind in ("entry", "evidence", "others", "actions", "sass", "header"):
        assert any(one.startswith(f"{kind}/") for one in ids), kind
    assert all(re.fullmatch(r"[A-Za-z0-9._=/~-]+", one) for one in ids)
    twice = Structure(render(review(entry(), entry()), "html"))
    check_links(twice)


def test_what_could_keep_it_from_being_merged_stands_out_first():
    page = Structure(render(whole(), "html"))
    (listing,) = page.all("ul", **{"class": "largest"})
    items = [one.words for one in page.all("li") if listing in one.inside]
    assert len(items) == 10
    assert items[:4] == [
        "1 entry is never selected",
        "1 workload does not get the planned values: scan.exclusive.sum on sm90",
        "1 kernel differs where none should: reduce.sum on sm90",
        f"0.930 of base's speed for Elements=2, x={HOSTILE} of scan.exclusive.sum T={HOSTILE}",
    ]


@pytest.mark.browser
def test_filters_keep_the_entries_that_fit(page):
    with opened(page) as (shown, _):
        count = shown.locator("#count")
        assert count.text_content() == "2 entries"
        shown.get_by_label("Arch").select_option("sm100")
        assert count.text_content() == "1 entry"
        shown.get_by_label("Arch").select_option("")
        shown.get_by_label("Find").fill("never selected")
        assert shown.locator(".entry:visible").count() == 1
        shown.get_by_label("Find").fill("")
        shown.locator("[data-of=types]").select_option(HOSTILE)
        shown.locator("[data-of=algorithms]").select_option("scan.exclusive.sum")
        assert count.text_content() == "2 entries"
        shown.locator("[data-of=types]").select_option("I8")
        assert count.text_content() == "1 entry"


@pytest.mark.browser
def test_headers_stand_side_by_side_with_colours(page):
    with opened(page) as (shown, _):
        table = shown.locator(".diff")
        assert table.locator(".out").count() == 2
        assert table.locator(".in").count() == 1
        assert table.locator(".gap").count() == 1
        assert table.locator("td .k").all_text_contents() == ["template", "int", "struct"]
        assert table.locator("td .s").all_text_contents() == ['"</td>"']


def test_rows_of_a_diff_keep_their_numbers():
    rows = list(side_by_side(unified("a", b"1\n2\n3\n4", b"1\n3\nx\n4\n")))
    assert [(one.kind, one.old, one.new) for one in rows] == [
        ("same", (1, "1"), (1, "1")),
        ("changed", (2, "2"), None),
        ("same", (3, "3"), (2, "3")),
        ("changed", (4, "4"), (3, "x")),
        ("changed", None, (4, "4")),
    ]


@pytest.mark.slow
def test_a_comment_fits_and_says_how_much_was_cut():
    text = render(whole(), "md")
    assert "<script>" not in text.replace(DIFF, "")
    assert "\n- rejected: " in text
    many = [entry(evidence=(evidence(400),)) for _ in range(300)]
    text = render(review(*many), "md")
    assert 5_000 < len(text) <= COMMENT
    assert "\nand 290 more" in text or "more\n" in text
    long = HeaderDiff(path=PATH, diff="+" + "x" * COMMENT)
    text = render(review(entry(), diffs=(long,)), "md")
    assert len(text) <= COMMENT
    assert text.endswith("The rest does not fit into a comment.\n")


def test_annotations_name_file_and_line():
    assert annotations(whole()).splitlines() == [
        f"::error file={PATH},line=9,title=policygen threads-over-limit::{HOSTILE}",
        f"::error file={PATH},line=9,title=policygen never selected::100%25 of, that: is%0Alost",
        f"::notice file={PATH},line=9,title=policygen not measured::no database given (--db)",
        "::error title=policygen effect::cub.bench.scan.exclusive.sum"
        f" T={HOSTILE} on sm90: it gets items 24",
        "::error title=policygen SASS::cub.bench.reduce.sum T=I8 on sm90: registers 8 → 9",
    ]


def test_a_leak_fails_a_review_unless_it_is_allowed():
    leaks = [
        Leak(arch=arch, workloads=count, bound=f"cc < {arch}", among=2)
        for arch, count in (("sm110", 1), ("sm120", 2))
    ]
    document = review(entry(leaks=tuple(leaks[:1])), entry(leaks=tuple(leaks)))
    this = "this or another of 2 returns that compute their values leaks to"
    leak = f"{this} sm110 (1 workload): cc < sm110 stops it, and --reaches sm110 allows it"
    both = f"{this} sm110 (1 workload), sm120 (2 workloads): cc < sm110 stops it, and --reaches"
    where = "tuning_scan.cuh:7"
    assert document.failures == (f"{where}: {leak}", f"{where}: {both} sm110,sm120 allows it")
    assert f"::error file={PATH},line=7,title=policygen leak::{leak}" in annotations(document)
    text = render(document, "html")
    assert text.count("--reaches sm110 allows it") == 2
    allowed = document.model_copy(update={"reaches": ("sm110",)})
    words = leak.replace("(1 workload)", "(2 workloads)").replace("sm110", "sm120")
    assert allowed.failures == (f"{where}: {words}",)
    assert document.model_copy(update={"reaches": ("sm110", "sm120")}).failures == ()


def test_a_review_of_nothing_is_short():
    text = render(review(compared=0, diffs=(), commands=(), remarks=("none",)), "md")
    assert text.startswith("# 0 tuning entries in 0 headers\n")
    assert "| **What changed** | **nothing**<br>no workload changes |" in text
    assert "database" not in text
    page = render(review(diffs=(), archs=()), "html")
    assert 'id="filters"' not in page


def test_what_a_return_computes_is_not_inherited():
    place = EntryPlace(**PLACE, args=("cc >= 9",), line=7)
    given = {"place": place, "change": "added", "before": None, "after": {}, "reached": ()}
    computed = entry(**given, kind="branch", inherits=(None, "{rp, rp}"), evidence=())
    inherited = entry(**given, inherits=(None, "base"), evidence=())
    for form in ("md", "html"):
        text = render(review(computed, inherited), form)
        plain = re.sub(r"<[^>]*>", "", text).replace("\\", "")
        assert "returns {rp, rp}" in plain
        assert "by itself: it computes its values from other returns." in plain
        assert "inherits nothing → base" in plain
        assert plain.count("those that it decides keep their values") == 1


@pytest.mark.browser
def test_both_sides_of_a_diff_are_readable_on_a_phone(tmp_path):
    path = tmp_path / "review.html"
    path.write_text(render(review(entry()), "html"))
    with opened(path, width=400) as (shown, said):
        assert overflow(shown) <= 0
        boxes = [shown.locator(f".diff .{side}").last.bounding_box() for side in ("out", "in")]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= 400 for box in boxes)
        assert boxes[0]["y"] < boxes[1]["y"]
        assert shown.locator(".diff td:visible", has_text="line 17").count() == 1
        assert said == []
    with opened(path, width=1200) as (shown, _):
        assert shown.locator(".diff td:visible", has_text="line 17").count() == 2


def plain(document):
    return re.sub(r"<[^>]*>", " ", render(document, "md")).replace("\\", "")


def test_an_entry_that_keeps_the_values_of_a_later_architecture_says_so():
    """`inherits base → nothing` would leave the reader with a puzzle."""
    given = {"arch": "sm100", "inherits": ("sm90_tuning<T>", None), "evidence": ()}
    text = plain(review(entry(**given, reached=())))
    assert "and now has values of its own: sm100 keeps its values through this entry" in text
    assert "→ nothing" not in text
    text = plain(review(entry(**given)))
    assert "and now has values of its own" in text
    assert "keeps its values" not in text


BROKEN = Uncovered(
    header="tuning_merge.cuh",
    line=52,
    what="no answer: cub.bench.merge.keys: after the change it does not compile:"
    ' tuning_merge.cuh:54: expected a ";"',
)


def test_a_header_that_does_not_compile_is_no_header_without_a_binding():
    text = plain(review(compared=0, uncovered=(BROKEN,)))
    card = text[text.index("Is it proven") : text.index("What could get worse")]
    assert 'does not compile: tuning_merge.cuh:54: expected a ";"' in card
    assert "no binding" not in text
    changed = plain(review(entry(reached=(), evidence=()), compared=0, uncovered=(BROKEN,)))
    assert "Which workloads it changes is unknown: the changed headers do not compile." in changed
    assert "was not queried" not in changed
    unbound = BROKEN.model_copy(update={"what": UNBOUND})
    text = plain(review(compared=0, uncovered=(unbound,)))
    assert "no binding covers what changed" in text
    assert "no values were compared" in plain(review(entry(), compared=0))


@pytest.mark.parametrize(
    "given", [{"compared": 0, "uncovered": (BROKEN,)}, {}, {"others": (differing(),)}]
)
def test_machine_code_that_was_compared_is_on_the_page(given):
    """Whatever else was compared, and whether or not values differ."""
    verified = sass(row("sm90", kernels=2, equal=2))
    text = plain(review(**given, sass=verified))
    assert "machine code: 2 of 2 kernels equal on sm90" in text
    assert "not compared" not in text
    nothing = verified.model_copy(update={"kernels": 0, "equal": 0, "identical": 4, "rows": ()})
    text = plain(review(**given, sass=nothing))
    assert "machine code: 4 workloads with the same source; nothing was compiled (sm90)" in text


ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r"
FENCE = f"// {ENDS.join('~' * n + '# ended' for n in range(3, 9))} @user https://x.y"


def test_no_line_of_a_header_ends_the_fence_of_its_diff():
    patch = unified(PATH, b"int x;\n", f"int y;\n{FENCE}\n~~~~~~~~~~\n".encode())
    text = render(review(entry(), diffs=(HeaderDiff(path=PATH, diff=patch),)), "md")
    _, _, behind = text.partition("~~~~~~~~~~~diff\n")
    inside, fence, rest = behind.partition("\n~~~~~~~~~~~\n")
    assert fence
    assert inside.split("\n")[-1] == "+~~~~~~~~~~"
    assert "ended" not in rest
    assert "+// ~~~# ended\\x0b\\x0c\\x1c" in inside
    assert all(line.replace("\t", "").isprintable() for line in text.split("\n"))


def test_no_name_of_a_file_ends_the_summary_of_its_diff():
    path = f"a/<b>_x_\n\n# gone @user\u2028/{PATH}"
    text = render(review(entry(), diffs=(HeaderDiff(path=path, diff=DIFF),)), "md")
    (row,) = [line for line in text.split("\n") if "<summary>" in line]
    assert row == (
        f"<details><summary>a/&lt;b&gt;_x_\\x0a\\x0a# gone @&#8203;user\\u2028/{PATH}</summary>"
    )


def test_a_page_shows_what_cannot_be_seen():
    patch = unified(PATH, b"a\n", "b\u202e\u2028\x1b\n".encode())
    diffs = (HeaderDiff(path=f"\u202e{PATH}", diff=patch),)
    text = render(review(entry(), diffs=diffs, remarks=("x\u2066y",)), "html")
    assert all(line.replace("\t", "").isprintable() for line in text.split("\n"))
    assert "b\\u202e\\u2028\\x1b" in text
    assert f"\\u202e{PATH}" in text


def test_the_lines_of_a_new_header_stand_on_its_page():
    (row,) = side_by_side(unified(PATH, b"", b"int x;\n"))
    assert (row.kind, row.old, row.new) == ("changed", None, (1, "int x;"))


def test_no_name_of_a_file_begins_another_annotation():
    diff = HeaderDiff(path=f"a,b:c\n::x::{PATH}", diff=DIFF)
    document = review(bad_entry(), diffs=(diff,))
    rows = annotations(document).removesuffix("\n").split("\n")
    assert all(row.startswith("::") for row in rows)
    assert any(row.startswith(f"::error file=a%2Cb%3Ac%0A%3A%3Ax%3A%3A{PATH}") for row in rows)


def test_workloads_with_the_same_change_and_other_values_show_all_of_theirs():
    first, last = differing(name="I8"), differing(name="I16")
    other = {"before": {**first.before, "threads": 128}, "after": {**first.after, "threads": 128}}
    rows = (first, differing(name="U8"), last.model_copy(update=other))
    text = render(review(entry(reached=rows)), "html")
    assert text.count("all resolved values on sm90") == 1
    labels = re.findall(r'aria-label="(Resolved values on .*?)"', text)
    assert labels == [
        "Resolved values on sm90 for scan.exclusive.sum T=I8, scan.exclusive.sum T=U8",
        "Resolved values on sm90 for scan.exclusive.sum T=I16",
    ]
    assert text.count("<td>threads</td>") == 1


def test_two_counts_are_explained():
    effect = Effect(
        cub=CUB, toolchain="nvcc", headers=("tuning_scan.cuh",), archs=("sm90",), compared=80,
        changed=(), wrong=(),
    )  # fmt: skip
    text = render(review(entry(), effect=effect, changed=3), "md")
    assert "477 of 480 unchanged (workloads times architectures)" in text
    assert "2 more change on future architectures between known ones" in text
    assert "effect: 0 of 80 as planned, all others as before" in text
    assert "\n80 compared (workloads times architectures), 0 changed (none), 0 wrong" in text
    assert "\n480 are counted above: this page covers everything that the changed headers" in text
    same = effect.model_copy(update={"compared": 480})
    assert "are counted above" not in render(review(entry(), effect=same), "md")
    assert "between known" not in render(review(entry(), effect=same, changed=1), "md")


@pytest.mark.parametrize(
    ("databases", "told"),
    [
        ((), "Not measured: no database given (--db)."),
        (("run.db",), "Not measured: no row of run.db has these values."),
    ],
)
def test_where_was_looked_for_measurements_is_told(databases, told):
    text = render(review(entry(evidence=()), databases=databases), "md")
    assert told.replace("_", "\\_") in text
    assert "0 workloads measured" in text
