"""How many variants there are, differ, and fail: `policygen measure --compile-only`."""

import json
from dataclasses import replace

import pytest

from policygen.app import measured_workloads
from policygen.app.filters import Filter
from policygen.app.measured_workloads import VariantsWanted, compile_variants
from policygen.errors import InputError
from policygen.model.benchmarks import ParameterRange
from policygen.model.measured import FailedVariant, MeasureCompile
from tests.gpu.pretended import PretendedCompiler
from tests.gpu.real import session
from tests.tiers import slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
SCAN = Filter(regex=r"cub\.bench\.scan\.exclusive\.sum$", axes=("T=I8", "OffsetT=I32"))
REDUCE = Filter(regex=r"cub\.bench\.reduce\.sum$", axes=("T=F32", "OffsetT=I32"))
END = "ns_600.dcid_1.l2w_200.trp_1.ld_0"
GOOD, TWIN = f"ipt_16.tpb_256.{END}", f"ipt_16.tpb_256.{END.replace('dcid_1', 'dcid_0')}"
DROPPED = f"ipt_23.tpb_1024.{END}"
"""Its tile has more than 48 KiB, whatever else the kernel has there."""
TIGHT = f"ipt_16.tpb_1024.{END}"
"""Its tile has 48 KiB, and the kernel a little more: only the assembler knows."""


@pytest.fixture
def no_compiler(monkeypatch, tmp_path):
    """Opens real workloads, and compiles nothing; text that holds what is bad is refused."""
    made = PretendedCompiler(tmp_path)
    monkeypatch.setattr(measured_workloads, "ObjectCompiler", lambda *_: made)
    return made


def asked(where, arch="sm90", version="3.6.0", **wanted):
    return compile_variants(session(version), where, arch, VariantsWanted(**wanted), slots=2)


@slow
def test_one_variant_with_too_much_shared_memory_costs_itself_alone():
    labels = (GOOD, f"ipt_12.tpb_128.{END}", TIGHT, DROPPED)
    document = asked(SCAN, labels=labels)
    (space,) = document.workloads
    assert (space.variants, space.valid, space.distinct) == (4, 3, 3)
    assert (space.asked, space.compiled, space.how) == (3, 2, "policies")
    assert [(one.variant, one.reason) for one in space.failed] == [
        (TIGHT, "ptxas: it uses too much shared data (0xc610 bytes, 0xc000 max)")
    ]
    assert space.dropped == {"A block of sm90 has 49,152 bytes of shared memory.": 1}


def test_the_whole_distinct_space_is_compiled(no_compiler):
    document = asked(REDUCE)
    (space,) = document.workloads
    assert (space.variants, space.valid, space.distinct, space.compiled) == (1044, 1044, 804, 804)
    assert space.failed == ()
    assert document.seed is None
    units = [text for text in no_compiler.texts if "policygen_run_0" in text]
    assert len(units) == 14, "base and 804 variants, 64 at most in each, and as many for each core"
    assert sum(text.count("struct policygen_selector_") for text in units) == 804
    assert document.is_fine
    failed = FailedVariant(variant="ipt_7", reason="ptxas: it uses too much shared data")
    spaces = (space.model_copy(update={"failed": (failed,)}),)
    assert not document.model_copy(update={"workloads": spaces}).is_fine


@pytest.mark.slow
def test_variants_of_the_same_policy_are_compiled_once(no_compiler):
    labels = (TWIN, TWIN.replace("ns_600", "ns_900"), GOOD)
    (space,) = asked(SCAN, labels=labels).workloads
    assert (space.variants, space.valid, space.distinct, space.compiled) == (3, 3, 2, 2)


@pytest.mark.slow
def test_as_many_are_drawn_as_are_wanted(no_compiler):
    document = asked(SCAN, count=5, seed=7)
    (space,) = document.workloads
    assert (space.variants, space.distinct) == (2_065_165_632, 1_374_687_136)
    assert (space.asked, space.compiled, document.seed) == (5, 5, 7)


def test_a_space_that_is_too_large_to_compile_is_told(no_compiler):
    (refused,) = asked(SCAN).unmeasured
    assert refused.reason == (
        "it has 1,374,687,136 distinct variants, too many to compile them all. Limit them with"
        " --count, or name some with --variant."
    )
    assert no_compiler.texts == []


def test_a_space_that_is_given_stands_for_that_of_the_binding(no_compiler):
    ranges = [
        ParameterRange(macro="X", label=label, start=start, end=end, step=step)
        for label, start, end, step in [
            ("ipt", 16, 18, 1),
            ("tpb", 128, 256, 128),
            ("ipv", 1, 1, 1),
        ]
    ]
    (space,) = asked(REDUCE, spaces={"cub.bench.reduce.sum": ranges}).workloads
    assert (space.variants, space.distinct, space.compiled) == (6, 6, 6)


def test_what_cannot_be_measured_says_why(no_compiler):
    where = Filter(regex=r"cub\.bench\.scan\.exclusive\.sum\.lookahead", axes=("T=I8",))
    document = asked(where, count=1)
    assert document.workloads == ()
    assert {one.reason for one in document.unmeasured} == {
        "CUB has this algorithm only on sm100 and later"
    }
    assert not document.is_fine


def test_a_benchmark_that_nothing_can_be_written_for_says_why(no_compiler):
    where = Filter(regex=r"cub\.bench\.segmented_topk\.fixed", axes=())
    document = asked(where, count=1)
    (reason,) = {one.reason for one in document.unmeasured}
    assert reason == (
        "policygen cannot write entries for this benchmark; edit tuning_batched_topk.cuh:"
        " the worker policies that make_baseline_policy lists"
    )


def test_a_header_that_does_not_compile_is_no_variant_of_it(no_compiler):
    no_compiler.bad = ("policygen_call(buffers,",)  # in units of variants, base among them
    (refused,) = asked(SCAN, count=3).unmeasured
    assert "static assertion failed" in refused.reason


def test_an_architecture_that_nvcc_does_not_know_is_refused():
    with pytest.raises(InputError, match="does not compile for sm35"):
        asked(REDUCE, arch="sm35")


def test_what_matches_nothing_is_refused():
    with pytest.raises(InputError, match=r"^no workload matches -R 'cub\.bench\.none'\n"):
        asked(Filter(regex="cub.bench.none"))


def test_the_document_has_the_fields_that_tools_rely_on(no_compiler):
    document = asked(SCAN, labels=(GOOD,))
    told = json.loads(document.to_json())
    fields = {"benchmark", "workload", "arch", "variants", "valid", "distinct", "failed"}
    assert fields <= told["workloads"][0].keys()
    assert told["format"] == "policygen/measure-compile/1"
    assert MeasureCompile.model_validate_json(json.dumps(told)).workloads == document.workloads


def test_many_workloads_are_announced(monkeypatch):
    told = []
    noting = replace(session("3.6.0"), note=told.append)
    monkeypatch.setattr(measured_workloads, "open_workloads", lambda *_: {})
    where = Filter((), "cub.bench.reduce.sum$", (), ())
    chosen, _ = measured_workloads.choose_lot(noting, where, "sm90", VariantsWanted())
    assert chosen == {}
    assert told == []
    everything = Filter((), "cub.bench.reduce", (), ())
    measured_workloads.choose_lot(noting, everything, "sm90", VariantsWanted())
    (words,) = told
    assert words.endswith(" workloads match; choose among them with -R and -a")
