"""The readers against the six CUB trees that wheels hold."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from policygen import trees
from policygen.headers.scan import read_header, scan_headers
from policygen.headers.specializations.families import find_declarations
from policygen.headers.syntax import parse_with_tree_sitter
from policygen.headers.text import Text
from tests.real_trees import tree as cub_tree
from tests.tiers import sampled

pytestmark = pytest.mark.trees

COUNTS = {"2.8.2": 440, "3.0.1": 440, "3.1.4": 440, "3.2.0": 444, "3.5.0": 441, "3.6.0": 441}
versions = pytest.mark.parametrize("version", sampled(COUNTS, "3.0.1", "3.6.0"))


@cache
def headers(version):
    paths = trees.tuning_headers(trees.open_tree(cub_tree(version)))
    scanned = scan_headers(paths, cached=False)
    assert scanned.errors == ()
    return dict(zip(paths, scanned.headers, strict=True))


def families(version):
    return [family for header in headers(version).values() for family in header.families]


def entries(version):
    for path, header in headers(version).items():
        data = path.read_bytes()
        for family in header.families:
            for entry in family.entries:
                yield data, family, entry


def count_in_text(path: Path) -> Counter[tuple[str, str]]:
    """Specializations by namespace and family, counted without any of policygen's code."""
    text = re.sub(r"//.*|/\*[\s\S]*?\*/", "", path.read_text(encoding="utf-8"))
    counts: Counter[tuple[str, str]] = Counter()
    namespaces: list[str | None] = []
    pattern = r"\bnamespace\s+([\w:]+)\s*\{|\bstruct\s+(sm\d+_\w+)\s*<|[{}]"
    for match in re.finditer(pattern, text):
        if match[1]:
            namespaces.append(match[1])
        elif match[2]:
            counts["::".join(n for n in namespaces if n), match[2]] += 1
        elif match[0] == "{":
            namespaces.append(None)
        elif namespaces:
            namespaces.pop()
    return counts


@versions
def test_every_specialization_is_found(version):
    assert sum(len(family.specializations) for family in families(version)) == COUNTS[version]


@versions
def test_each_family_has_as_many_entries_as_its_text(version):
    for path, header in headers(version).items():
        found = {
            (family.namespace.removeprefix("cub::"), family.name): len(family.specializations)
            for family in header.families
            if family.specializations
        }
        assert found == dict(count_in_text(path)), path


@versions
def test_a_value_replaced_by_itself_through_its_span_changes_no_byte(version):
    checked = 0
    for data, _, entry in entries(version):
        for member in entry.members:
            start, end = member.value_span
            value = data[start:end].decode()
            assert data[:start] + value.encode() + data[end:] == data
            # Commented-out values run over several comment lines.
            assert entry.disabled or " ".join(value.split()) == member.spelling
            statement = data[slice(*member.span)]
            assert statement.endswith(b";")
            assert member.name.encode() in statement
            assert statement.startswith((b"static", b"using", b"constexpr"))
            checked += 1
    assert checked > 1800


@versions
def test_spans_cover_what_they_name(version):
    for data, family, entry in entries(version):
        text = data[slice(*entry.span)]
        assert text.startswith(b"template"), (family.name, entry.line)
        assert text.endswith(b";")
        assert family.name.encode() in text
        assert data[: entry.span.start].count(b"\n") + 1 <= entry.line
        if not entry.disabled:
            spelled = [" ".join(data[slice(*s)].decode().split()) for s in entry.arg_spans]
            assert spelled == list(entry.args)
        for label in entry.labels:
            assert data[slice(*label.span)].decode().startswith(label.variant)
        if entry.guard_span:
            assert data[slice(*entry.guard_span)].lstrip().startswith(b"#")


@versions
def test_every_label_in_a_header_belongs_to_an_entry(version):
    """Counted independently: lines of comments that begin with a variant."""
    for path, header in headers(version).items():
        text = path.read_text(encoding="utf-8")
        # Selectors, which come later in newer headers, have labels of their own.
        text = re.split(r"\bget_sm\d+_tuning\b|\bstruct policy_selector\b", text)[0]
        pattern = r"^\s*(?://\s*)+((?:[a-z]\w*_\d+\.)+[a-z]\w*_\d+)\b"
        expected = Counter(re.findall(pattern, text, re.MULTILINE))
        found = Counter(
            label.variant for f in header.families for e in f.entries for label in e.labels
        )
        assert found == expected, path


def test_labels_per_family_are_those_that_people_counted():
    labelled = Counter()
    for family in families("3.0.1"):
        for entry in family.specializations:
            labelled[family.namespace.split("::", 2)[2], family.arch] += entry.variant is not None
    assert {key: count for key, count in labelled.items() if count} == {
        ("histogram", "sm100"): 2,
        ("radix", "sm100"): 35,
        ("reduce", "sm100"): 4,
        ("reduce_by_key", "sm100"): 16,
        ("rle::encode", "sm100"): 4,
        ("rle::non_trivial_runs", "sm100"): 4,
        ("scan", "sm100"): 7,
        ("scan_by_key", "sm100"): 15,
        ("select", "sm100"): 37,
        ("three_way_partition", "sm100"): 5,
        ("unique_by_key", "sm100"): 13,
    }


def test_disabled_entries_stand_where_people_found_them():
    found = {}
    for family in families("3.0.1"):
        lines = [entry.line for entry in family.entries if entry.disabled]
        if lines:
            found.setdefault(family.header, []).extend(lines)
    assert {header: sorted(lines) for header, lines in found.items()} == {
        "tuning_radix_sort.cuh": [161, 178, 196, 211],
        "tuning_reduce_by_key.cuh": [667, 728, 785, 841, 853],
        "tuning_run_length_encode.cuh": [291, 300, 582, 592],
        "tuning_scan.cuh": [332, 399, 408, 410],
        "tuning_select_if.cuh": [
            *(576, 594, 632, 650, 671, 682, 841),
            *(852, 920, 993, 1065, 1175, 1193, 1320),
        ],
        "tuning_three_way_partition.cuh": [235, 246, 277, 286, 327],
        "tuning_unique_by_key.cuh": [578, 636, 697, 760],
    }


def entry(version, header, family, *args):
    for found in families(version):
        if (found.header, found.name) == (f"tuning_{header}.cuh", family):
            for candidate in found.entries:
                if candidate.args == args:
                    return candidate
    raise AssertionError(f"{header} {family} {args} not found")


def test_values_are_numbers_truth_values_and_enumerators():
    args = (
        "true",
        "SampleT",
        "1",
        "1",
        "counter_size::_4",
        "primitive_sample::yes",
        "sample_size::_1",
    )
    found = entry("3.0.1", "histogram", "sm100_tuning", *args)
    assert found.values == {
        "items": 12,
        "threads": 928,
        "rle_compress": False,
        "work_stealing": False,
        "mem_preference": "SMEM",
        "load_modifier": "LOAD_CA",
        "load_algorithm": "BLOCK_LOAD_DIRECT",
        "vec_size": 4,
    }
    assert found.members[-1].spelling == "1 << 2"
    assert found.scores == (1.033332, 0.940517, 1.031835, 1.195876)
    assert found.remarks == ("even",)


def test_a_rejected_variant_is_not_that_of_the_entry_which_inherits():
    args = (
        "KeyT",
        "ValueT",
        "primitive_key::yes",
        "primitive_val::yes",
        "key_size::_4",
        "val_size::_4",
    )
    found = entry("3.0.1", "unique_by_key", "sm100_tuning", *args)
    assert (found.variant, found.scores, found.values) == (None, None, {})
    assert found.inherits == f"sm90_tuning<{', '.join(args)}>"
    assert [(label.variant, label.rejected) for label in found.labels] == [
        ("ipt_14.tpb_512.trp_0.ld_0.ns_408.dcid_7.l2w_960", True)
    ]
    assert found.remarks[0].startswith("todo(gonidelis): tuning performs very well for medium")


@pytest.mark.parametrize(
    ("header", "family", "args", "variant", "scores"),
    [
        (
            "reduce",
            "sm86_tuning",
            ("double",),
            "ipt_11.tpb_128",
            (1.232089, 1.002124, 1.245336, 1.582279),
        ),
        (
            "reduce",
            "sm90_tuning",
            ("float",),
            "ipt_13.tpb_224",
            (1.107188, 1.009709, 1.097114, 1.31682),
        ),
        (
            "scan",
            "sm75_tuning",
            (
                *("ValueT", "AccumT", "OffsetT", "op_type::plus"),
                *("primitive_accum::yes", "offset_size::_8", "value_size::_4"),
            ),
            "ipt_7.tpb_128.ns_628.dcid_1.l2w_520.trp_1.ld_0",
            None,
        ),
    ],
)
def test_labels_are_read_however_people_typed_them(header, family, args, variant, scores):
    found = entry("3.2.0", header, family, *args)
    assert (found.variant, found.scores) == (variant, scores)


def test_guards_and_layouts_are_told():
    args = ("__int128_t", "primitive_op::yes", "primitive_accum::no", "accum_size::_16")
    line = entry("3.0.1", "scan", "sm90_tuning", *args)
    assert (line.guard, line.layout, line.format_off) == ("_CCCL_HAS_INT128()", "line", True)
    block = entry("3.0.1", "scan", "sm80_tuning", *args)
    assert (block.guard, block.layout, block.format_off) == ("_CCCL_HAS_INT128()", "block", False)


def test_line_ends_of_another_system_change_no_value():
    def bare(header):
        return [
            (f.name, [(e.args, e.values, e.labels and e.scores) for e in f.entries])
            for f in header.families
        ]

    for path, header in headers("3.0.1").items():
        data = path.read_bytes()
        changed = b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")
        other = read_header(path.name, changed)
        assert bare(other) == bare(header)
        for family in other.families:
            for found in family.specializations:
                for member in found.members:
                    assert (
                        " ".join(changed[slice(*member.value_span)].decode().split())
                        == member.spelling
                    )


def uses(version):
    for header in headers(version).values():
        for chain in header.chains:
            for policy in chain.policies:
                for use in policy.uses:
                    yield chain, policy, use


@versions
def test_every_family_is_read_by_a_policy(version):
    read = {(c.header, c.namespace, u.family) for c, _, u in uses(version)}
    tuned = {(f.header, f.namespace, f.name) for f in families(version) if f.specializations}
    assert tuned == {key for key in read if key in tuned}


@versions
def test_every_tuning_has_the_members_that_its_selection_reads(version):
    """The check that would have caught the histogram tunings that were skipped for months."""
    reads = {(c.header, c.namespace, u.family): u.reads for c, _, u in uses(version)}
    for family in families(version):
        for found in family.specializations:
            if found.values:
                missing = set(reads[family.header, family.namespace, family.name]) - set(
                    found.values
                )
                assert not missing, (family.header, family.name, found.line)


@versions
def test_chains_run_from_the_oldest_policy_to_the_newest_without_a_gap(version):
    for header in headers(version).values():
        for chain in header.chains:
            names = [policy.name for policy in chain.policies]
            assert [policy.predecessor for policy in chain.policies] == [None, *names[:-1]]
            assert chain.max_policy == names[-1], chain.header
            assert chain.namespace.startswith("cub::detail"), chain.header


def test_the_chain_of_histogram_reads_what_people_noted():
    found = {
        u.family: (p.name, p.predecessor, u.reads)
        for c, p, u in uses("3.0.1")
        if c.header == "tuning_histogram.cuh"
    }
    common = ("threads", "items", "load_algorithm", "load_modifier", "rle_compress")
    sm90 = (*common, "mem_preference", "work_stealing")
    assert found == {
        "sm90_tuning": ("Policy900", "Policy500", sm90),
        "sm100_tuning": ("Policy1000", "Policy900", (*sm90, "vec_size")),
    }


def test_primary_templates_give_kinds_types_and_defaults():
    (family,) = [
        f for f in families("3.0.1") if f.header == "tuning_histogram.cuh" and f.arch == "sm100"
    ]
    assert [(p.kind, p.type, p.name, p.default) for p in family.parameters] == [
        ("value", "bool", "IsEven", None),
        ("type", "class", "SampleT", None),
        ("value", "int", "NumChannels", None),
        ("value", "int", "NumActiveChannels", None),
        ("value", "counter_size", "CounterSize", None),
        ("value", "primitive_sample", "PrimitiveSample", "is_primitive_sample<SampleT>()"),
        ("value", "sample_size", "SampleSize", "classify_sample_size<SampleT>()"),
    ]


LOST = {"2.8.2": {"tuning_select_if.cuh": 34, "tuning_unique_by_key.cuh": 12}}


@versions
def test_tree_sitter_sees_no_template_that_the_lexer_does_not(version):
    """One that only the lexer sees is kept: of the oldest tree tree-sitter loses 46."""
    lost = Counter()
    for path in headers(version):
        data = path.read_bytes()
        declared = {declaration.name_span for declaration in find_declarations(Text("", data).code)}
        counted = {*parse_with_tree_sitter(data).families}
        assert counted <= declared
        lost[path.name] += len(declared - counted)
    assert +lost == LOST.get(version, {})
