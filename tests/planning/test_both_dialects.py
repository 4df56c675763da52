"""The same results, applied to CUB 3.2.0 and to CUB 3.6.0, come to the same values.

3.2.0 chooses by specializations, 3.6.0 by policy selectors. What is compared is what the compiler
takes in the changed headers, on the architecture that was measured; not what the plans say.
"""

from collections import Counter
from dataclasses import fields, replace

import pytest

from policygen.model.results import Rules
from policygen.proof.oracle import Compiler
from policygen.results.ranking import rank
from policygen.results.together import choose_together
from tests.planning.test_every_family import same_for_all, winners
from tests.planning.wanted import Planned
from tests.probing import root
from tests.results.measured import MEASURED
from tests.tiers import slow, without

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, slow]

# What policies of 3.6.0 alone have: run-length encoding and scan select one of several algorithms
# there, and are written only where it is the one that 3.2.0 has; select hints at its next loads.
# How many bins start the next kernel early is no value of a binding; it is compared all the same.
ALONE = {"algorithm", "load_prefetch", "init_kernel_pdl_trigger_max_bins"}


class OnOneArch(Compiler):
    """A proof for the architecture that is tuned; other tests ask for all of them."""

    arch: str

    def _question(self, place, *sides):
        return replace(super()._question(place, *sides), archs=(self.arch,))


class OneArch(Planned):
    """A plan in which later architectures have no say."""

    def __init__(self, version, wanted, arch, together):
        self.tuned = arch
        options = {"arch": arch, "force": True, "reach": "later"}
        super().__init__(root(version), wanted, together=together, **options)

    def asked(self, compiler):
        kind = type("OnThatArch", (OnOneArch,), {"arch": self.tuned})
        given = [one.name for one in fields(Compiler) if one.init]
        return kind(**{name: getattr(compiler, name) for name in given})

    def proved(self):
        """Each result's action, and the values that the compiler takes for what was written."""
        if not self.after:
            return [(action, None) for action in self.plan.actions]
        effect = self.effect()
        assert [f"{one.name}: {one.reason}" for one in effect.wrong] == []
        after = {
            (one.benchmark, tuple(sorted(one.workload.items()))): one.after
            for one in effect.changed
            if one.role == "written"
        }
        return [
            (action, after[action.benchmark, tuple(sorted(action.workload.items()))])
            if action.written
            else (action, None)
            for action in self.plan.actions
        ]


def both(wanted, arch, together):
    """What the trees get for each result: their actions, and their values."""
    sides = [OneArch(version, wanted, arch, together).proved() for version in ("3.2.0", "3.6.0")]
    assert len(sides[0]) == len(sides[1]) == len(wanted)
    return list(zip(*sides, strict=True))


def same(old, was, new, now):
    """Whether both write one variant: a return and a specialization may serve other workloads."""
    return was is not None and now is not None and old.variant == new.variant


def disagreements(pairs):
    """Workloads that both write, and the values that differ."""
    found = []
    for (old, was), (new, now) in pairs:
        assert old.benchmark == new.benchmark
        if not same(old, was, new, now):
            continue
        # Of an algorithm that was not selected, fields are told by their paths.
        own = {name for name in set(now) - set(was) if not name.startswith("lookback.")}
        assert own <= ALONE
        assert set(was) <= set(now)
        differing = {name: (was[name], now[name]) for name in was if was[name] != now[name]}
        if differing:
            found.append((old.benchmark, old.workload, old.variant, differing))
    return found


def one_sided(pairs):
    """Why 3.6.0 does not write what 3.2.0 does, and the other way round."""
    old = [new.reason for (_, was), (new, now) in pairs if was and not now]
    new = [old.reason for (old, was), (_, now) in pairs if now and not was]
    return old, new


def unexplained(reasons, known):
    return [reason for reason in reasons if not any(one in reason for one in known)]


# What returns cannot take, and specializations can: there is no return with these conditions; the
# selector takes another algorithm than the one that was measured; the benchmark has another axis;
# a return serves other workloads than a specialization does, and they want different values.
FAMILIES_ALONE = (
    "has its conditions except for a size or a type",
    "returns a policy for it before the returns of",
    "would have ",
    "would change ",
    "CUB selects a different algorithm for it than the measured one",
    " of CUB 3.6.0 has the axis OffsetT, but the database does not",
    "the variant means different values for each of them",
)
# Families of sm90 leave the size of vectors to the default of an agent's policy.
SELECTORS_ALONE = (
    "has no family of tunings for ",
    "an entry with ",
    "would be unreachable: ",
    "would change ",
    "entries of sm90_tuning cannot have vec_size: 4 is not an argument",
    "the variant means different values for each of them",
)
# At least as many workloads of a benchmark are compared.
COMPARED = {
    "sm90": {
        "select.unique_by_key": 33,
        "scan.exclusive.by_key": 24,
        "reduce.by_key": 23,
        "radix_sort.pairs": 20,
        "partition.flagged": 20,
        "partition.if": 20,
        "run_length_encode.encode": 18,
        "run_length_encode.non_trivial_runs": 16,
        "partition.three_way": 14,
        "scan.exclusive.sum": 10,
        "select.flagged": 10,
        "select.if": 10,
        "select.unique": 10,
        "radix_sort.keys": 4,
        "histogram.even": 1,
        "histogram.range": 1,
    },
    "sm100": {
        "scan.exclusive.by_key": 40,
        "select.unique_by_key": 35,
        "reduce.by_key": 34,
        "run_length_encode.non_trivial_runs": 26,
        "partition.flagged": 26,
        "partition.if": 26,
        "radix_sort.pairs": 20,
        "partition.three_way": 14,
        "select.flagged": 13,
        "select.if": 13,
        "select.unique": 13,
        "reduce.sum": 9,
        "transform_reduce.sum": 9,
        "histogram.even": 4,
        "histogram.range": 4,
        "histogram.multi.even": 4,
        "histogram.multi.range": 4,
        "radix_sort.keys": 4,
    },
}


@pytest.mark.parametrize("arch", without(COMPARED, "sm90"))
def test_results_for_every_workload_come_to_the_same_values_in_both_dialects(arch):
    pairs = both(winners("3.2.0"), arch, same_for_all)
    assert disagreements(pairs) == []
    compared = Counter(
        old.benchmark.removeprefix("cub.bench.")
        for (old, was), (new, now) in pairs
        if same(old, was, new, now)
    )
    fewer = {name: (compared[name], n) for name, n in COMPARED[arch].items() if compared[name] < n}
    assert fewer == {}
    families, selectors = one_sided(pairs)
    assert unexplained(families, FAMILIES_ALONE) == []
    assert unexplained(selectors, SELECTORS_ALONE) == []


# Less than a win, and luck is no matter: so that more than one measured variant is written.
LAX = Rules(least_score=1.0, worst_allowed=0.8, confidence=0.01, accept_unconfirmed=True)


def test_measured_results_come_to_the_same_values_in_both_dialects():
    """What an H200 showed for CCCL 3.0.3; of the scans those of bytes, as with `-a T=I8`."""
    paths = sorted(MEASURED.glob("A_*/cccl_meta_bench.db"))
    found = [
        one
        for one in rank(paths, rules=LAX, top=LAX.candidates + 1).workloads
        if one.workload.get("T{ct}") == "I8" or "scan" not in one.algorithm
    ]
    pairs = both(found, "sm90", lambda cases: choose_together(paths, scored(cases), LAX))
    assert disagreements(pairs) == []
    for (old, _), (new, _) in pairs:
        # CUB 3.2.0 has no family for reductions before sm100; 3.6.0 gets a function of its own.
        lacks = "tuning_reduce.cuh has no family of tunings for sm90" in old.reason
        assert lacks or old.decision == new.decision
    written = {
        (old.benchmark.removeprefix("cub.bench."), *old.workload.values()): old.variant
        for (old, was), (_, now) in pairs
        if was and now
    }
    assert written == {
        ("histogram.even", "I8", "I32", "I32"): "ipt_24.tpb_768.rle_0.ws_0.mem_1.ld_1.laid_0.vec_2",
        ("radix_sort.keys", "I16", "I32"): "ipt_19.tpb_384",
        ("radix_sort.keys", "I16", "I64"): "ipt_23.tpb_512",
        ("reduce.sum", "F32", "I32"): "ipt_16.tpb_256.ipv_2",
        ("reduce.sum", "I32", "I32"): "ipt_16.tpb_256.ipv_2",
        ("scan.exclusive.sum", "I8", "I32"): "ipt_16.tpb_256.ns_600.dcid_0.l2w_400.trp_1.ld_0",
    }


def scored(cases):
    return [case.measurement.scored for case in cases]
