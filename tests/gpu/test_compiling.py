"""Which units are compiled, and what becomes of variants that are refused; no compiler is run."""

from collections import Counter
from dataclasses import replace

import pytest

from policygen.errors import InputError, MissingToolError, ProcessError
from policygen.gpu.compiling import Candidate, WorkloadToCompile, compile_workloads
from policygen.process import Stopped
from policygen.proof.compile import RefusedError
from tests.gpu.pretended import PretendedCompiler

LABELS = tuple(f"ipt_{number}" for number in range(1, 32))


def render(lot):
    return " ".join(one.label for one in lot)


def workload(labels=LABELS, name="one", includes=None):
    made = tuple(Candidate(label, {"items": "1"}) for label in labels)
    if includes:
        made = tuple(Candidate(label, None, (f"/{label}",)) for label in labels)
    return WorkloadToCompile(name, "sm90", ("/tree",), f"inputs-of-{name}", render, made)


@pytest.fixture
def compiler(tmp_path):
    return PretendedCompiler(tmp_path)


def compiled(compiler, *asked, slots=2, **more):
    return compile_workloads(asked or [workload()], "runner", compiler, slots=slots, **more)


def failing(compiler, *asked, **more):
    """What fails of each workload, or its problem, if none will run."""
    results = compile_workloads(asked, None, compiler, slots=2, **more)
    return [getattr(result, "failed", result) for result in results]


def test_each_variant_is_a_function_of_a_unit(compiler):
    (made,) = compiled(compiler)
    assert [one.variant for one in made.functions] == ["base", *LABELS]
    assert made.failed == {}
    assert Counter(compiler.texts).most_common(1)[0][1] == 1, "no unit twice"
    by_place = {(one.library, one.function): one.variant for one in made.functions}
    for number, text in enumerate(compiler.texts, start=1):
        for place, label in enumerate(text.split() if "base" in text or "ipt" in text else []):
            assert by_place[f"{compiler.folder}/{number}.so", f"policygen_run_{place}"] == label
    assert {made.inputs.name, made.runner.name} == {
        f"{compiler.texts.index(text) + 1}.so" for text in ("runner", "inputs-of-one")
    }


def test_all_cores_have_a_unit(compiler):
    compiled(compiler, slots=4)
    sizes = [len(text.split()) for text in compiler.texts if "ipt" in text]
    assert sorted(sizes) == [7, 8, 8, 8], "base has a unit of its own"


@pytest.mark.parametrize("bad", [("ipt_1",), ("ipt_31",), ("ipt_3", "ipt_4"), LABELS])
def test_a_variant_that_is_refused_costs_itself_alone(compiler, bad):
    compiler.bad = bad
    (made,) = compiled(compiler)
    assert made.failed == dict.fromkeys(bad, "static assertion failed")
    assert [one.variant for one in made.functions] == ["base", *(x for x in LABELS if x not in bad)]
    assert len(compiler.texts) == len(set(compiler.texts)), "no unit twice"


def test_a_culprit_is_found_by_halves(compiler):
    compiler.bad = ("ipt_20",)
    compiled(compiler)
    assert len(compiler.texts) == 5 + 2 * 4, "the runner, inputs, base, two units, four splits"


def test_what_the_assembler_names_is_not_looked_for(compiler):
    compiler.bad, compiler.named = ("ipt_2", "ipt_20", "ipt_21"), True
    (made,) = compiled(compiler)
    assert made.failed.keys() == set(compiler.bad)
    assert made.failed["ipt_2"] == "ptxas: it uses too much shared data (0x1e180 bytes, 0xc000 max)"
    assert len(made.functions) == 29
    sizes = sorted(len(text.split()) for text in compiler.texts if "ipt" in text)
    assert sizes == [14, 14, 15, 16], "two units, and each without those that are named"


def test_a_header_that_is_broken_is_no_fault_of_variants(compiler):
    compiler.bad = ("base", *LABELS)
    (problem,) = compiled(compiler)
    assert isinstance(problem, RefusedError)
    assert problem.first == "static assertion failed"
    assert len(compiler.texts) <= 5, "nothing is split"


def test_inputs_that_do_not_compile_are_no_fault_of_variants(compiler):
    compiler.bad = ("inputs-of-one",)
    problem, made = compiled(compiler, workload(), workload(name="two"))
    assert isinstance(problem, RefusedError)
    assert len(made.functions) == 32


def test_a_runner_that_does_not_compile_ends_all(compiler):
    compiler.bad = ("runner",)
    with pytest.raises(RefusedError):
        compiled(compiler)


def test_a_compiler_that_is_killed_is_tried_with_less(compiler):
    """Base compiles alone: it is not the machine that has too little memory."""
    compiler.killed = ("ipt_5",)
    (made,) = compiled(compiler)
    assert made.failed == {"ipt_5": "it was killed. Is there enough memory?"}
    assert len(made.functions) == 31


def test_a_machine_without_memory_is_told_once(compiler):
    compiler.killed = ("base", *LABELS)
    (problem,) = compiled(compiler)
    assert isinstance(problem, ProcessError)
    assert problem.remedy == "Is there enough memory?"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MissingToolError("nvcc", "Install it."), MissingToolError),
        (OSError(28, "No space left on device", "/cache/x"), InputError),
    ],
)
def test_what_all_variants_need_ends_all(compiler, monkeypatch, error, told):
    def fails(source):
        raise error

    monkeypatch.setattr(compiler, "make", fails)
    with pytest.raises(told):
        compiled(compiler)


def test_variants_with_headers_of_their_own_have_a_unit_each(compiler, monkeypatch):
    sources, make = [], compiler.make
    monkeypatch.setattr(compiler, "make", lambda one: sources.append(one) or make(one))
    (made,) = compiled(compiler, workload(("ipt_1", "ipt_2"), includes=True))
    assert [one.function for one in made.functions] == ["policygen_run_0"] * 3
    assert {one.text: one.includes for one in sources} == {
        "runner": (),
        "inputs-of-one": ("/tree",),
        "base": ("/tree",),
        "ipt_1": ("/ipt_1", "/tree"),
        "ipt_2": ("/ipt_2", "/tree"),
    }


def test_workloads_fail_apart(compiler):
    compiler.bad = ("ipt_2",)
    one, two = compiled(compiler, workload(("ipt_1", "ipt_2")), workload(("ipt_3",), "two"))
    assert one.failed.keys() == {"ipt_2"}
    assert [function.variant for function in two.functions] == ["base", "ipt_3"]


def test_without_a_run_neither_inputs_nor_base_are_compiled(compiler):
    told = []
    one = workload(("ipt_1",))
    assert failing(compiler, one, progress=told.append) == [{}]
    assert compiler.texts == ["ipt_1"]
    assert (told[-1].done, told[-1].total) == (1, 1)


def test_without_a_run_base_tells_who_is_at_fault(compiler):
    compiler.bad = ("ipt_2",)
    (failed,) = failing(compiler, workload(("ipt_1", "ipt_2")))
    assert failed == {"ipt_2": "static assertion failed"}
    assert sorted(compiler.texts) == ["base", "ipt_1", "ipt_2"]
    compiler.bad = ("base", *LABELS)
    (problem,) = failing(compiler, workload())
    assert isinstance(problem, RefusedError)
    assert failing(compiler) == []


def test_a_workload_whose_variants_are_all_base_compiles_base(compiler):
    assert failing(compiler, workload(())) == [{}]
    assert compiler.texts == ["base"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            '{here}/main.cu(13): error: identifier "scal" is undefined\n    y = scal * x;\n    ^',
            'main.cu:13: identifier "scal" is undefined: y = scal * x;',
        ),
        (
            '/cache/units/tmp1/main.cu(13): error: identifier "scal" is undefined\n  f(scal);',
            'small.toml:2: identifier "scal" is undefined: arguments = ["scal"]',
        ),
        ('/cache/units/tmp1/main.cu(13): error: a "b"', 'a "b"'),
        ('/tree/cub/x.cuh(13): error: "scal"\n  f(scal);', 'x.cuh:13: "scal"'),
        ("no place", "no place"),
    ],
)
def test_an_error_in_the_users_file_has_its_line(compiler, tmp_path, words, told):
    own = tmp_path / "small.toml"
    own.write_text('# scal\narguments = ["scal"]\n')
    compiler.bad, compiler.words = ("base", "ipt_1"), words.format(here=tmp_path)
    (problem,) = compiled(compiler, replace(workload(("ipt_1",)), own=own))
    assert problem.in_line == f"it does not compile: {told}"


def test_nothing_to_compile_is_nothing(compiler):
    assert compile_workloads([], "runner", compiler) == []
    assert compiler.texts == []


def test_it_is_told_how_far_it_is(compiler):
    told = []
    compiled(compiler, progress=told.append)
    assert (told[0].phase, told[0].done, told[0].total) == ("compiling variants", 0, 32)
    assert (told[-1].done, told[-1].running) == (32, ())
    names = {name for one in told for name in one.running}
    assert names <= {"the inputs of one", "base", "ipt_1 and 14 more", "ipt_16 and 15 more"}


def test_who_interrupts_is_told_what_is_kept(compiler):
    def interrupt(how_far):
        if how_far.done:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as stopped:
        compiled(compiler, progress=interrupt)
    (words,) = stopped.value.args
    assert words.endswith("of 32 variants are compiled and kept; the same command resumes there.")
