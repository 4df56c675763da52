"""Plans and effects on terminals of several widths."""

import pytest

from policygen.model.plans import Action, Named, Options, Plan, PlannedFile, Reached, Target, Way
from policygen.model.selection import Changed, Effect, Wrong
from policygen.model.tuning import changes
from policygen.report import console, plan_views
from policygen.report.plan_views import SHOWN, STYLES
from tests.planning.pretend import CUB, SUM

RUN = {"gpu": "B200 (8192, 148, eccon)", "ctk": "13.0.88", "cccl": "v3.0.1"}
LABEL = "ipt_20.tpb_256.ipv_2"
ARGS = ("T", "OffsetT", "op_type::plus", "offset_size::_4", "accum_size::_4")
WAS = {"items": 16, "threads": 512, "load_modifier": "LOAD_LDG"}
NOW = {"items": 20, "threads": 256, "load_modifier": "LOAD_LDG"}


def target(line=6):
    return Target(
        header="tuning_reduce.cuh",
        namespace="cub::detail::reduce",
        family="sm100_tuning",
        args=ARGS,
        line=line,
    )


def action(decision, t="I32", reason="best score: 1.200000", **more):
    values = {"variant": LABEL, "target": target(), "before": WAS, "databases": ("a.db", "b.db")}
    return Action(
        **RUN,
        benchmark=more.pop("benchmark", SUM),
        workload={"T": t, "OffsetT": "I32"},
        decision=decision,
        reason=reason,
        **{**values, **more},
    )


def reached(t, arch="sm100", *, kept=False):
    return Reached(benchmark=SUM, workload={"T": t, "OffsetT": "I32"}, arch=arch, kept=kept)


def plan(*actions, **more):
    files = (PlannedFile(path="tuning_reduce.cuh", edits=4, before="0", after="1"),)
    return Plan(
        **{
            "cub": CUB,
            "toolchain": "nvcc 13.2",
            "options": Options(arch="sm100"),
            "actions": actions,
            "files": files,
            **more,
        }
    )


ALL = plan(
    action("update", after=NOW),
    action("add", "F32", after=NOW, target=target(None)),
    action("keep", "I64", "it has these values already", after=WAS),
    action("keep", "U64", "it has these values already", after=WAS, target=target(None)),
    action("fallback", "F64", "no variant passes the rules", variant=None, after=WAS),
    action("reject", "I8", "would be unreachable: it has a very long reason", target=target(None)),
    action("reject", "I16", "measured on H200, which is sm90", target=None, before=None,
           benchmark="cub.bench.transform_reduce.sum"),
    policies=("Policy1030", "Policy1200"),
    remarks=("measured on CCCL 3.0.0, but the tree is CUB 3.0.1",),
    reached=(
        *(reached(f"A{i}") for i in range(SHOWN + 3)),
        reached("I32", "sm120"),
        reached("F32", "sm120", kept=True),
    ),
)  # fmt: skip


def printed(capsys, monkeypatch, width, show, *, head=True, verbose=False):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    show(head=head, verbose=verbose)
    return capsys.readouterr().out


@pytest.fixture
def show(capsys, monkeypatch):
    def run(document, width=80, **options):
        view = plan_views.planned if isinstance(document, Plan) else plan_views.effected
        return printed(
            capsys, monkeypatch, width, lambda **how: console.show(view(document, **how)), **options
        )

    return run


EIGHTY = """\
CUB 3.0.1 (specializations), /made/up [--cub]; nvcc 13.2; sm100

cub.bench.reduce.sum
  update   T=I32 OffsetT=I32  ipt_20.tpb_256.ipv_2
           best score: 1.200000
           sm100_tuning<T, OffsetT, op_type::plus, offset_size::_4,
             accum_size::_4>, tuning_reduce.cuh:6
           items 16 → 20  threads 512 → 256
  add      T=F32 OffsetT=I32  ipt_20.tpb_256.ipv_2
           best score: 1.200000
           sm100_tuning<T, OffsetT, op_type::plus, offset_size::_4,
             accum_size::_4>, new in tuning_reduce.cuh
           items 16 → 20  threads 512 → 256
  keep     T=I64 OffsetT=I32  ipt_20.tpb_256.ipv_2
           it has these values already
           sm100_tuning<T, OffsetT, op_type::plus, offset_size::_4,
             accum_size::_4>, tuning_reduce.cuh:6
  keep     T=U64 OffsetT=I32  ipt_20.tpb_256.ipv_2
           it has these values already
           sm100_tuning<T, OffsetT, op_type::plus, offset_size::_4,
             accum_size::_4>, no entry in tuning_reduce.cuh
  fallback T=F64 OffsetT=I32
           no variant passes the rules
  reject   T=I8 OffsetT=I32  ipt_20.tpb_256.ipv_2
           would be unreachable: it has a very long reason
           sm100_tuning<T, OffsetT, op_type::plus, offset_size::_4,
             accum_size::_4>, no entry in tuning_reduce.cuh

cub.bench.transform_reduce.sum
  reject   T=I16 OffsetT=I32  ipt_20.tpb_256.ipv_2
           measured on H200, which is sm90

the same entries also decide, unmeasured, on sm100:
  cub.bench.reduce.sum T=A0 OffsetT=I32
  cub.bench.reduce.sum T=A1 OffsetT=I32
  cub.bench.reduce.sum T=A2 OffsetT=I32
  cub.bench.reduce.sum T=A3 OffsetT=I32
  cub.bench.reduce.sum T=A4 OffsetT=I32
  cub.bench.reduce.sum T=A5 OffsetT=I32
  cub.bench.reduce.sum T=A6 OffsetT=I32
  cub.bench.reduce.sum T=A7 OffsetT=I32
  cub.bench.reduce.sum T=A8 OffsetT=I32
  cub.bench.reduce.sum T=A9 OffsetT=I32
  cub.bench.reduce.sum T=A10 OffsetT=I32
  cub.bench.reduce.sum T=A11 OffsetT=I32
  and 3 more (-v lists them)

later architectures keep their values through entries of their own:
  cub.bench.reduce.sum T=F32 OffsetT=I32 on sm120

later architectures inherit:
  cub.bench.reduce.sum T=I32 OffsetT=I32 on sm120

new in the chain: Policy1030, Policy1200
note: measured on CCCL 3.0.0, but the tree is CUB 3.0.1
7 workloads: 1 updated, 1 added, 2 have these values already, 1 left to the
  fallback, 2 rejected; 4 edits in 1 header
"""


def test_a_plan_at_eighty_columns(show):
    assert show(ALL) == EIGHTY


def test_a_plan_on_a_wide_terminal_has_each_thing_on_one_line(show):
    wide = show(ALL, 160)
    text = " ".join(EIGHTY.split())
    assert " ".join(wide.split()) == text
    assert f"           sm100_tuning<{', '.join(ARGS)}>, tuning_reduce.cuh:6\n" in wide


@pytest.mark.parametrize("width", [40, 80, 160])
def test_nothing_is_cut_and_nothing_is_too_wide(show, width):
    rows = show(ALL, width, verbose=True)
    assert max(map(len, rows.splitlines())) <= width
    whole = "".join(show(ALL, 1000, verbose=True).split())
    assert "".join(rows.split()) == whole


def test_all_reached_workloads_and_their_sources_are_told_when_asked(show):
    rows = show(ALL, 160, verbose=True)
    assert "T=A14" in rows
    assert "more (-v" not in rows
    assert "           B200 (8192, 148, eccon), CUDA 13.0.88, CCCL v3.0.1: a.db + b.db\n" in rows


def test_without_its_head_a_plan_has_no_tree_and_no_sum(show):
    rows = show(plan(action("update", after=NOW)), head=False)
    assert rows.startswith("cub.bench.reduce.sum\n")
    assert "workload" not in rows


def test_a_long_variant_has_a_line_of_its_own(show):
    label = "ipt_20.tpb_256.trp_1.ld_0.ns_1000.dcid_7.l2w_1200.and_more_1.words_2"
    rows = show(plan(action("update", after=NOW, variant=label))).splitlines()
    assert rows[3:5] == ["  update   T=I32 OffsetT=I32", f"{' ' * 11} {label}"]


def test_ways_stand_below_their_workloads_and_their_commands_are_not_folded(show):
    names = [f"T{n}" for n in range(SHOWN + 2)]
    named = tuple(Named(benchmark=SUM, workload={"T": t}) for t in names)
    command = f"policygen emit --db {'a' * 90}.db"
    ways = (
        Way(workloads=named[:1], what="a selector for many", command=command),
        Way(kind="emit", workloads=named[:1], what="a selector", command="policygen emit"),
        Way(kind="emit", workloads=named, what="a selector", command="policygen emit -v"),
    )
    found = plan(action("reject", "I8", "it has no place"), ways=ways)
    _, _, shown = show(found).partition("options that would accept rejected results:\n")
    assert shown.startswith(
        f"  {SUM} T=T0\n    a selector for many:\n      {command}\n    a selector:\n"
        f"      policygen emit\n  {SUM} T=T0 | T=T1 | "
    )
    assert "and 2 more\n    a selector:\n      policygen emit -v\n" in shown


def test_an_apply_says_where_to_look_for_what_is_rejected(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def shown(document):
        console.show(plan_views.applied(document, head=True))
        return capsys.readouterr().out

    told = "policygen plan lists options that would accept rejected results\n"
    assert shown(ALL).endswith(told)
    assert told not in shown(plan(action("update", after=NOW)))


@pytest.mark.parametrize("count", [1, 2])
def test_a_plan_and_an_apply_have_the_same_words_for_an_action(capsys, monkeypatch, show, count):
    """`kept` was an action's word, and that of another one."""
    chosen = [action(decision, f"T{n}") for decision in STYLES for n in range(count)]
    verb = "has" if count == 1 else "have"
    untouched = [f"{verb} these values already", "left to the fallback"]
    _, _, counted = show(plan(*chosen), 160).rpartition(": ")
    assert counted.partition(";")[0].split(", ") == [
        *(f"{count} {words}" for words in ("updated", "added", *untouched, "rejected"))
    ]
    shown = printed(
        capsys,
        monkeypatch,
        160,
        lambda **how: console.show(plan_views.applied(plan(*chosen), head=True)),
    )
    noun = "workload" if count == 1 else "workloads"
    assert [row for row in shown.splitlines() if row.startswith(f"{count} {noun}")] == [
        f"{count} {noun} {words}" for words in untouched
    ]


def effect(**more):
    changed = [
        ("I32", "sm90", "written"),
        ("F32", "sm90", "shared"),
        ("I32", "sm100", "later"),
    ]
    return Effect(
        **{
            "cub": CUB,
            "toolchain": "nvcc 13.2",
            "headers": ("tuning_reduce.cuh",),
            "archs": ("sm80", "sm90", "sm100"),
            "compared": 1200,
            "changed": tuple(
                Changed(
                    benchmark=SUM,
                    workload={"T": t, "OffsetT": "I32"},
                    arch=arch,
                    role=role,
                    before=WAS,
                    after=NOW,
                )
                for t, arch, role in changed
            ),
            **more,
        }
    )


WRONG = Wrong(
    benchmark=SUM,
    workload={"T": "I64", "OffsetT": "I32"},
    arch="sm80",
    reason="an earlier architecture changes: items 16 → 20",
)


def test_an_effect_is_one_line(show):
    assert show(effect(), 160) == (
        "proof: 1 workload changed as written, 2 that share an entry or inherit, 1,197 as before"
        " (nvcc 13.2; sm80, sm90, sm100)\n"
    )


def test_an_effect_without_others_does_not_speak_of_them(show):
    changed = effect().changed[:1]
    assert show(effect(changed=changed), 160) == (
        "proof: 1 workload changed as written, 1,199 as before (nvcc 13.2; sm80, sm90, sm100)\n"
    )


def test_an_effect_at_eighty_columns_is_folded(show):
    assert show(effect(wrong=(WRONG,)), verbose=True) == (
        "cub.bench.reduce.sum T=I64 OffsetT=I32 on sm80: an earlier architecture changes:\n"
        "  items 16 → 20\n"
        "  cub.bench.reduce.sum T=I32 OffsetT=I32 on sm90: items 16 → 20, threads 512 →\n"
        "    256 (written)\n"
        "  cub.bench.reduce.sum T=F32 OffsetT=I32 on sm90: items 16 → 20, threads 512 →\n"
        "    256 (shared)\n"
        "  cub.bench.reduce.sum T=I32 OffsetT=I32 on sm100: items 16 → 20, threads 512 →\n"
        "    256 (later)\n"
        "proof: 1 workload changed as written, 2 that share an entry or inherit, 1 wrong,\n"
        "  1,196 as before (nvcc 13.2; sm80, sm90, sm100)\n"
    )


def test_what_is_wrong_is_told_even_without_a_head(show):
    assert show(effect(), head=False) == ""
    assert "1 wrong" in show(effect(wrong=(WRONG,)), head=False)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": True}, {"a": 2, "b": False}, ["a 1 → 2", "b true → false"]),
        ({}, {"a": 1}, ["a nothing → 1"]),
        ({"a": 1, "b": 2}, {"b": 3}, ["b 2 → 3", "a 1 → nothing"]),
    ],
)
def test_changes_are_told_value_by_value(before, after, told):
    assert changes(before, after) == told
