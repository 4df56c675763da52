"""Mistakes that were made upstream, planted into real headers: each is found, and nothing else."""

import re
from functools import cache

import pytest

from tests.probing import changed_tree, header, reached, read, replaced, root
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

VERSIONS = ["2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0"]
UPSTREAM = {("tuning_histogram.cuh", "sm100_tuning"): "vec_size"}
"""The member that NVIDIA/cccl#3691 was about."""
LINE = "accum_size::_8> : sm90_tuning_vals<double, 224, 24, 576, 1215> {};"
BODY = (
    "accum_size::_8> { static constexpr int threads = 224; static constexpr int tune_items = 24;"
    " using delay_constructor = fixed_delay_constructor_t<576, 1215>;"
    " static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_WARP_TRANSPOSE;"
    " static constexpr BlockStoreAlgorithm store_algorithm = BLOCK_STORE_WARP_TRANSPOSE; };"
)
"""Entries of this family inherit all that they have: one gets a body, on the line of its own."""


def name(found):
    # Two namespaces of one header have families of the same name.
    return found.header, found.family, found.args, found.line


def told(result):
    assert result.errors == ()
    return {(*name(each), each.cause) for each in result.unreachable}


@cache
def tuned():
    """The families of CUB 3.0.1 whose entries are selected by their members."""
    return [
        (tuning_header, family)
        for tuning_header in read(root("3.0.1")).headers
        for family in tuning_header.families
        if family.specializations and tuning_header.name != "tuning_radix_sort.cuh"
    ]


def reads(tuning_header, family):
    return {
        member: None
        for chain in tuning_header.chains
        if chain.namespace == family.namespace
        for policy in chain.policies
        for use in policy.uses
        if use.family == family.name
        for member in use.reads
    }


@pytest.fixture(scope="module")
def clean():
    return reached(root("3.0.1"))


@pytest.fixture(scope="module")
def planted(clean, tmp_path_factory):
    """One entry of each family gets a member that nobody reads: family → entry, member; result."""
    by_no_benchmark = {name(each) for each in (*clean.unreachable, *clean.call_only)}
    edits, mistakes = {}, {}
    for number, (tuning_header, family) in enumerate(tuned()):
        where = (tuning_header.name, family.namespace, family.name)
        members = list(reads(tuning_header, family))
        member = UPSTREAM.get((tuning_header.name, family.name), members[number % len(members)])
        inherited = {e.inherits for f in tuning_header.families for e in f.entries if e.inherits}
        for entry in family.specializations:
            own = next((m for m in entry.members if m.name == member), None)
            spelling = f"{family.name}<{', '.join(entry.args)}>"
            key = (tuning_header.name, family.name, entry.args, entry.line)
            if own and key not in by_no_benchmark and spelling not in inherited:
                edits.setdefault(tuning_header.name, []).append((own.span, member))
                mistakes[where] = ((entry.args, entry.line), member)
                break
        else:
            assert where[::2] == ("tuning_scan.cuh", "sm90_tuning")
            double = next(e for e in family.specializations if e.args[0] == "double")
            mistakes[where] = ((double.args, double.line), "items")
    data = {}
    for file, changes in edits.items():
        text = header("3.0.1", file)
        for span, member in sorted(changes, reverse=True):
            old = text[span.start : span.end]
            new = re.sub(rb"\b%b\b" % member.encode(), b"tune_" + member.encode(), old, count=1)
            assert new != old
            text = text[: span.start] + new + text[span.end :]
        data[file] = text
    data["tuning_scan.cuh"] = replaced(data["tuning_scan.cuh"], (LINE, BODY))
    folder = tmp_path_factory.mktemp("planted")
    return mistakes, reached(changed_tree(folder, "3.0.1", data))


def families():
    """By name, as the bindings have them: reading the tree when tests are collected takes long."""
    three = ("sm80_tuning", "sm90_tuning", "sm100_tuning")
    yield from (("histogram", family) for family in three[1:])
    yield ("reduce", "sm100_tuning")
    for namespace in (
        "reduce_by_key",
        "rle::encode",
        "rle::non_trivial_runs",
        "scan",
        "scan_by_key",
        "select",
        "three_way_partition",
        "unique_by_key",
    ):
        yield from ((namespace, family) for family in three)


@pytest.mark.slow
@pytest.mark.parametrize(("namespace", "family"), list(families()))
def test_a_member_that_is_misspelled_is_found_in_each_family(planted, clean, namespace, family):
    mistakes, result = planted
    (found,) = [
        ((file, each, *entry), member)
        for (file, space, each), (entry, member) in mistakes.items()
        if (space, each) == (f"cub::detail::{namespace}", family)
    ]
    entry, member = found
    assert entry not in map(name, clean.unreachable)
    reported = [each for each in result.unreachable if name(each) == entry]
    assert [each.cause for each in reported] == ["missing member"]
    assert reported[0].reason == f"has no {member}; the selection needs it"
    assert reported[0].example  # a workload that has the key


@pytest.mark.slow
def test_nothing_else_is_reported_than_what_was_planted(planted, clean):
    mistakes, result = planted
    assert len(mistakes) == len(list(families())) == len(tuned())
    expected = {
        (file, family, *entry, "missing member")
        for (file, _, family), (entry, _) in mistakes.items()
    }
    assert told(result) - told(clean) == expected
    assert told(clean) <= told(result)
    assert result.entries == clean.entries == 440


@pytest.mark.slow
def test_what_the_clean_tree_has_is_what_is_known_of_it(clean):
    """CUB 3.0.1, with the workloads of benchmarks and one offset type."""
    told_of = {(each.header, each.cause) for each in clean.unreachable}
    assert {
        ("tuning_radix_sort.cuh", "gate"),
        ("tuning_reduce_by_key.cuh", "empty"),
        ("tuning_run_length_encode.cuh", "inherits without"),
        ("tuning_three_way_partition.cuh", "argument"),
    } <= told_of
    assert not {cause for _, cause in told_of} & {"missing member", "shadowed"}


INHERITS = (
    "struct sm100_tuning<KeyT, AccumT, primitive_op::yes, primitive_key::yes,"
    " primitive_accum::yes, key_size::_1, accum_size::_4>"
)
GATED = "decltype(select_agent_policy100<sm100_tuning<KeyT, ValueT>>(0))"
MORE_SPECIAL = """template <class Input>
struct sm100_tuning<Input, ::cuda::std::int32_t, input_size::_4, offset_size::_4>
{
  static constexpr int threads                       = 96;
  static constexpr int items                         = 5;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT;
  using delay_constructor                            = no_delay_constructor_t<640>;
};

"""


@pytest.fixture(scope="module")
def misled(tmp_path_factory):
    """Three mistakes, each in a header of its own."""
    by_key = header("3.0.1", "tuning_reduce_by_key.cuh").decode()
    start = by_key.index(INHERITS) + len(INHERITS)
    end = by_key.index("};", start)
    lines = "\n" * by_key.count("\n", start, end)
    base = INHERITS.removeprefix("struct ").replace("sm100", "sm90")
    three = header("3.0.1", "tuning_three_way_partition.cuh").decode()
    at = three.index("struct policy_hub")
    at = three.rindex("template", 0, at)
    gate = f"::cuda::std::_If<(sizeof(KeyT) < 4), {GATED}, typename Policy900::UniqueByKeyPolicyT>"
    data = {
        "tuning_reduce_by_key.cuh": f"{by_key[:start]} : {base} {{{lines}{by_key[end:]}".encode(),
        "tuning_unique_by_key.cuh": replaced(
            header("3.0.1", "tuning_unique_by_key.cuh"), (GATED, gate)
        ),
        "tuning_three_way_partition.cuh": (three[:at] + MORE_SPECIAL + three[at:]).encode(),
    }
    folder = tmp_path_factory.mktemp("misled")
    return reached(
        changed_tree(folder, "3.0.1", data), "reduce_by_key", "unique_by_key", "three_way_partition"
    )


def new(misled, clean, file):
    return [
        each
        for each in misled.unreachable
        if each.header == file and name(each) not in map(name, clean.unreachable)
    ]


@pytest.mark.slow
def test_an_inheritance_from_an_entry_that_lacks_a_member_is_found(misled, clean):
    (found,) = new(misled, clean, "tuning_reduce_by_key.cuh")
    assert (found.family, found.cause) == ("sm100_tuning", "inherits without")
    assert found.args[-2:] == ("key_size::_1", "accum_size::_4")
    assert found.reason.startswith("inherits from sm90_tuning<KeyT, AccumT, ")
    assert found.reason.endswith(", which has no load_modifier; the selection needs it")
    assert found.example.startswith("cub.bench.reduce.by_key KeyT=I8 ValueT=I")


@pytest.mark.slow
def test_a_gate_is_found_with_the_keys_that_pass_it(misled, clean):
    found = new(misled, clean, "tuning_unique_by_key.cuh")
    assert {(each.family, each.cause) for each in found} == {("sm100_tuning", "gate")}
    assert {each.args[4] for each in found} == {"key_size::_4", "key_size::_8"}
    assert {each.reason for each in found} == {
        "the policy reads the family only where KeySize is _1 or _2"
    }
    selected = {each.args for each in misled.call_only if each.header == found[0].header}
    assert not selected & {each.args for each in found}


@pytest.mark.slow
def test_an_entry_that_a_more_special_one_hides_is_found(misled, clean):
    (found,) = new(misled, clean, "tuning_three_way_partition.cuh")
    assert found.args == ("Input", "OffsetT", "input_size::_4", "offset_size::_4")
    assert (found.cause, found.example) == ("shadowed", None)
    text = header("3.0.1", found.header).decode()
    hub = text.rindex("template", 0, text.index("struct policy_hub"))
    line = text.count("\n", 0, hub) + 2  # the line of the name, below that of the template
    assert found.reason == (
        f"another entry of the family, that in line {line}, is selected for each of its keys"
    )


HISTOGRAM = "histogram"
AS_UPSTREAM = """template <class SampleT>
struct sm100_tuning<ARGS>
{
  static constexpr int items                                     = 12;
  static constexpr int threads                                   = 448;
  static constexpr bool rle_compress                             = false;
  static constexpr bool use_work_stealing                        = false;
  static constexpr BlockHistogramMemoryPreference mem_preference = SMEM;
  static constexpr CacheLoadModifier load_modifier               = LOAD_LDG;
  static constexpr BlockLoadAlgorithm load_algorithm             = BLOCK_LOAD_DIRECT;
  static constexpr int vec_size                                  = 1 << 2;
};

"""
NEVER = "SampleSize is never {}; it is _1, _2 or unknown"
"""CUB 3.6 tells samples of 1 and 2 bytes apart from all others."""
EXCLUDED = {
    "0, SampleT, 1, 1, counter_size::_4, primitive_sample::yes, sample_size::_4": (
        "argument",
        NEVER.format("_4"),
    ),
    "true, SampleT, 1, 1, counter_size::_4, primitive_sample::yes, sample_size::_8": (
        "argument",
        NEVER.format("_8"),
    ),
    "0, SampleT, 2, 2, counter_size::_4, primitive_sample::yes, sample_size::_2": (
        "argument",
        "several conditions exclude it: the nearest workload has NumChannels 1 for 2 and"
        " NumActiveChannels 1 for 2",
    ),
    "1, SampleT, 1, 3, counter_size::_4, primitive_sample::yes, sample_size::_1": (
        "key",
        "NumChannels 1 never occurs with NumActiveChannels 3; it occurs with 1",
    ),
}


@pytest.mark.slow
def test_the_fact_that_is_told_is_the_one_that_keeps_every_workload_away(tmp_path):
    """`IsEven is never 0` was told of the first, as the compiler prints `false`."""
    text = header("3.6.0", "tuning_histogram.cuh").decode()
    at = text.rindex("//", 0, text.rindex("template", 0, text.index("struct policy_hub")))
    entries = "".join(AS_UPSTREAM.replace("ARGS", args) for args in EXCLUDED)
    data = {"tuning_histogram.cuh": (text[:at] + entries + text[at:]).encode()}
    found = reached(changed_tree(tmp_path, "3.6.0", data), HISTOGRAM, archs=("sm100",))
    assert found.errors == ()
    told_of = [one for one in found.unreachable if one.family == "sm100_tuning"]
    assert {", ".join(one.args): (one.cause, one.reason) for one in told_of} == EXCLUDED


SM90 = "sm90_small_key_tuning"
"""Not asked for here."""


@pytest.mark.slow
@pytest.mark.parametrize("version", sampled(VERSIONS, "3.6.0"))
def test_the_dead_radix_sort_tunings_are_found_in_each_version(version):
    """NVIDIA/cccl#11083: 26 entries for keys of 4 bytes and more, dead for 19 months."""
    found = reached(root(version), "radix_sort", offsets=True, archs=("sm100",))
    gated = [each for each in found.unreachable if each.cause == "gate"]
    assert {each.family for each in gated} == {"sm100_small_key_tuning"}
    assert len(gated) == 26
    assert {int(each.args[1]) for each in gated} == {4, 8, 16}
    assert {each.reason for each in gated} == {
        "the policy reads the family only where KeySize is 1 or 2"
    }
    assert all(each.example for each in gated)
    # Keys alone are sorted without a value type; these four say that there is one.
    rest = {e.args[0] for e in found.unreachable if e.family != SM90 and e.cause != "gate"}
    assert rest == {"float", "double"}


@pytest.mark.slow
def test_a_member_that_is_read_directly_is_missed_by_the_compiler(tmp_path):
    """Radix sort has no fallback: a misspelled member is an error, and nothing is unreachable."""
    text = header("3.0.1", "tuning_radix_sort.cuh").decode()
    at = text.index("items", text.index("sm90_small_key_tuning<1,  2, 4>"))
    data = f"{text[:at]}tune_{text[at:]}".encode()
    tree = changed_tree(tmp_path, "3.0.1", {"tuning_radix_sort.cuh": data})
    found = reached(tree, "radix_sort", archs=("sm90",))
    (error,) = found.errors
    assert 'has no member "items"' in str(error)
    assert found.unreachable == ()
