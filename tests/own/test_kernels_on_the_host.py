"""Units of kernels of one's own: their text, and what they launch on a runtime that is no GPU's."""

import ctypes

import pytest

from policygen.app.filters import Filter
from policygen.app.measured_workloads import chosen_workloads, open_workloads
from policygen.app.own_workloads import with_workload
from policygen.app.session import open_session
from policygen.gpu.compiling import OWN, ObjectSource
from policygen.gpu.opened import KernelWorkload, to_compile
from policygen.gpu.space import Classifier, joined
from tests.gpu import compiled
from tests.gpu.stub import Arena, stub
from tests.own.kernels import write_saxpy, write_small
from tests.real_trees import tree

pytestmark = pytest.mark.trees
FACTS = ctypes.c_longlong * 9


def opened(path):
    """The classes of sizes of a kernel, as a command opens them."""
    session = open_session(str(tree("3.6.0")))
    own, where = with_workload(session, path, Filter((), "", (), ()))
    return list(open_workloads(own, chosen_workloads(own, where), "sm90").values())


def text_of(one, *labels):
    """The unit of base and some variants."""
    candidates = one.candidates(labels)
    assert not candidates.refused
    (run,) = one.runs
    return to_compile(one.meaning, run, candidates.made).render([OWN, *candidates.made])


def test_a_macro_has_one_value_in_a_unit_and_constants_have_one_each(tmp_path):
    short, long = opened(write_small(tmp_path))
    (candidate,) = short.candidates(["ipt_1.tpb_256"]).made
    (run,) = short.runs
    made = to_compile(short.meaning, run, (candidate,))
    assert made.alone
    text = made.render([candidate])
    assert "#define TUNE_BLOCK 256\n" in text
    assert text.index("#define TUNE_BLOCK") < text.index('#include "add.cu"')
    assert "constexpr auto ipt = 1;" in text
    assert "policygen_function               = &add<ipt>;" in text
    assert "const int one = static_cast<int>(1);" in text
    assert "#define TUNE_BLOCK 128\n" in made.render([OWN])
    assert str(tmp_path) in made.includes
    assert long.candidates(["ipt_4.tpb_128"]).base == ("ipt_4.tpb_128",)
    refused = short.candidates(["ipt_16.tpb_128", "ipt_4.tpb_200", "ipt_7.tpb_128"]).refused
    assert refused["ipt_16.tpb_128"] == "it violates tpb * ipt <= 1024"
    assert refused["ipt_7.tpb_128"] == "ipt = 7 is not one of its values"
    assert refused["ipt_4.tpb_200"].startswith("tpb = 200 is outside of 128:512:128")


def test_template_arguments_share_a_unit(tmp_path):
    small, _ = opened(write_saxpy(tmp_path))
    label = "strategy_3.threads_512.items_2"
    (run,) = small.runs
    assert not to_compile(small.meaning, run, small.candidates([label]).made).alone
    text = text_of(small, label, "strategy_1.threads_128.items_1")
    assert "#define" not in text.partition('#include "saxpy.cu"')[0].partition("#define main")[0]
    assert "constexpr auto threads = 512;" in text
    assert text.count("policygen_function               = &strided<threads, items>;") == 2
    assert text.count("static own_memory managed;") == 1
    assert "policygen_run_1_before" in text
    assert "policygen_run_2_before" not in text
    assert text.count("_reference(") == 1
    assert "return (12ll * static_cast<long long>(elements));" in text


def test_what_a_space_has_is_what_values_and_rules_leave(tmp_path):
    small, large = opened(write_saxpy(tmp_path))
    assert isinstance(small.meaning, KernelWorkload)
    assert small.space.ranges["items"] == (1, 2, 4, 8)
    classifier = Classifier(small.space, small.meaning)
    counts = classifier.counts()
    assert (counts.variants, counts.valid, counts.distinct) == (64, 52, 52)
    told = classifier.classify()
    assert [one.label for one in told.distinct if one.is_base] == ["strategy_0.threads_256.items_1"]
    assert told.dropped == {"it violates strategy == 0 || items <= 4": 12}
    assert {part.labels for part in joined(small.meaning.groups())} == {
        ("strategy", "items"),
        ("threads",),
    }
    assert large.name == "own.saxpy.large"


class Loaded:
    """A unit in the stub's memory."""

    def __init__(self, opened, *labels, elements):
        stub()  # before the runtime that the unit asks for
        (run,) = opened.runs
        includes = to_compile(opened.meaning, run, ()).includes
        source = ObjectSource(text_of(opened, *labels), includes, "sm90")
        self.unit = ctypes.CDLL(str(compiled.compiler().make(source)))
        self.sizes = (ctypes.c_longlong * 1)(elements)
        self.places = [stub().allocate(4 * elements) for _ in run.binding.buffers]
        self.buffers = (ctypes.c_void_p * len(self.places))(*self.places)
        stub().forget()

    def run(self, number, what=""):
        """The launch that a function comes to."""
        stub().forget()
        arena = ctypes.byref(Arena(None, 0, 0, 0))
        function = getattr(self.unit, f"policygen_run_{number}{what}")
        assert function(self.buffers, self.sizes, arena, None) == 0
        (one,) = stub().launches
        return one

    def facts(self, number):
        """What is told of the launch."""
        found = FACTS()
        function = getattr(self.unit, f"policygen_run_{number}_facts")
        assert function(self.buffers, self.sizes, found) == 0
        return list(found)

    def beside(self, number, what):
        """The status of what is done before or after."""
        return getattr(self.unit, f"policygen_run_{number}_{what}")(self.buffers, self.sizes)

    def resize(self, elements):
        """Another size in the same place."""
        self.sizes[0] = elements


@pytest.mark.slow
@pytest.mark.nvcc
def test_strategies_launch_what_they_say(tmp_path):
    labels = ("strategy_1.threads_512.items_2", "strategy_3.threads_128.items_1")
    small, _ = opened(
        write_saxpy(tmp_path, ('memory = "managed"\n\n[[size]]', 'memory = "pinned"\n\n[[size]]'))
    )
    unit = Loaded(small, *labels, "strategy_2.threads_256.items_1", elements=1_000_000)
    base = unit.run(0)
    assert "blocked" in base.name
    assert (base.blocks, base.block[0], base.shared) == (3907, 256, 0)
    strided = unit.run(1)
    assert "strided" in strided.name
    assert (strided.blocks, strided.block[0]) == (132 * 4, 512)
    assert "one_by_one" in unit.run(0, "_reference").name
    assert unit.facts(1) == [32, 0, 0, 0, 512, 528, 4, 2048, 12_000_000]
    assert unit.run(2).block[0] == 128
    before = stub().allocated
    assert unit.beside(2, "before") == unit.beside(3, "before") == 0
    assert stub().allocated - before == 2 * 4_000_000  # what is pinned is the host's
    assert unit.beside(3, "before") == 0
    assert stub().allocated - before == 2 * 4_000_000
    unit.resize(500_000)
    assert unit.beside(3, "before") == 0
    assert stub().allocated - before == 2 * 2_000_000
    assert unit.run(3).blocks == 1954
    assert unit.beside(3, "after") == unit.beside(2, "after") == 0
    assert not stub().harm


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_kernel_with_a_macro_and_its_inputs_compile(tmp_path):
    changed = (
        ('shared = "tpb * 4"', 'shared = "tpb * 512"'),
        ("resident * 2", "resident * 2 + best_block"),
    )
    short, long = opened(write_small(tmp_path, *changed))
    (run,) = long.runs
    unit = Loaded(long, elements=70_001)
    made = to_compile(short.meaning, run, ())
    inputs = ctypes.CDLL(
        str(compiled.compiler().make(ObjectSource(made.inputs, made.includes, "sm90")))
    )
    one = unit.run(0)
    assert (one.block[0], one.shared, one.blocks) == (128, 65536, 137)
    assert unit.facts(0)[-1] == 2 * 4 * 70_001
    sizes, told = (ctypes.c_longlong * 1)(), (ctypes.c_longlong * 2)()
    assert not inputs.policygen_shape((ctypes.c_longlong * 1)(70_001), sizes, told)
    assert (sizes[0], list(told)) == (70_001, [280_004, 280_004])
