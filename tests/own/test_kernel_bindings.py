"""What a kernel's file and its `%RANGE%` lines say, as bindings; and what they cannot say."""

import pytest

from policygen.app.own_workloads import is_kernel, taking_kernel
from policygen.bindings import load
from policygen.bindings.load import bound
from policygen.bindings.own_kernels import active_kernel
from policygen.errors import InputError, PolicygenError
from policygen.headers.benchmark_sources import read_kernel
from tests.own.kernels import ADD, EXAMPLES, write_saxpy, write_small
from tests.own.written import write_particles

VERSION = "3.6.0"


def refused(folder, *changed, **more):
    with (
        pytest.raises(PolicygenError) as raised,
        taking_kernel(read_kernel(write_small(folder, *changed, **more))),
    ):
        bound(VERSION)
    told = str(raised.value)
    assert str(folder) in told or "add.cu" in told
    return told


def test_it_is_an_algorithm_as_long_as_it_is_taken(tmp_path):
    before, known = bound(VERSION), load.identity()
    path = write_small(tmp_path)
    with taking_kernel(read_kernel(path)) as maker:
        assert active_kernel() is maker
        assert load.identity() != known
        *others, own = bound(VERSION)
        assert tuple(others) == before
        assert [one.name for one in own.benchmarks] == ["own.small.short", "own.small.long"]
        assert own.benchmarks[0].parameters == {"ipt": "1:16:3", "tpb": "128:512:128"}
        assert [one.constants for one in own.benchmarks] == [{"SizeClass": "0"}, {"SizeClass": "1"}]
        assert [one.axes for one in own.runs] == [{"Elements": ("1000",)}, {"Elements": ("70001",)}]
        assert own.runs[0].arguments == "in, out, one, elements"
        assert own.runs[0].buffers["in"].fill == "rising(to, count)"
        assert own.runs[0].buffers["out"].result == "equal"
        assert maker.start == {"ipt": 4, "tpb": 128}
        assert maker.only == {"ipt": (1, 4, 16), "tpb": (128, 256, 384, 512)}
        assert maker.pattern == r"(own\.small\.short|own\.small\.long)$"
    assert active_kernel() is None
    assert bound(VERSION) == before


def test_a_kernels_file_is_told_from_a_workloads(tmp_path):
    assert is_kernel(write_small(tmp_path))
    assert not is_kernel(write_particles(tmp_path))


@pytest.mark.parametrize("name", ["saxpy", "block_sum"])
def test_the_examples_are_read(name):
    with taking_kernel(read_kernel(EXAMPLES / f"{name}/{name}.toml")) as maker:
        assert maker.names[0].startswith(f"own.{name}")
        assert bound(VERSION)[-1].runs


def test_what_a_file_says_of_a_declared_macro_goes_before_its_line(tmp_path):
    path = write_small(tmp_path, ("[buffer.in]", "[parameter.tpb]\nvalues = [64]\n[buffer.in]"))
    one = read_kernel(path).given.parameter["tpb"]
    assert (one.macro, one.numbers, one.start) == ("TUNE_BLOCK", (64,), 64)


def test_declared_macros_alone_are_enough(tmp_path):
    nothing = "[parameter.ipt]\nvalues = [1, 4, 16]\ndefault = 4\n"
    changed = ((nothing, ""), ("add<ipt>", "add"), ("tpb * ipt", "tpb"))
    with taking_kernel(read_kernel(write_small(tmp_path, *changed))) as maker:
        assert bound(VERSION)[-1].runs
        assert maker.start == {"tpb": 128}
    told = refused(tmp_path, *changed[:2], ("tpb * ipt", "4"), ("tpb", "32"), source="")
    assert "parameter is missing: nothing varies" in told
    assert "Say [parameter.NAME], several [[strategy]], or %RANGE% lines in add.cu." in told


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ('"32:96:32"', (32, 64, 96)),
        ('"-2:2:2"', (-2, 0, 2)),
        ('"powers 3:40"', (4, 8, 16, 32)),
        ('"warps"', tuple(range(32, 1025, 32))),
        ("[4, 2]", (4, 2)),
        ('["a::b", "c"]', (0, 1)),
    ],
)
def test_values_are_said_in_several_ways(tmp_path, values, numbers):
    path = write_small(tmp_path, ("[1, 4, 16]\ndefault = 4", values))
    with taking_kernel(read_kernel(path)) as maker:
        one = maker.given.parameter["ipt"]
        assert one.numbers == numbers
        assert one.start == numbers[0]
        assert {*numbers} <= {*maker.benchmarks[0].values("ipt")}


def test_a_default_that_is_a_word_is_its_place(tmp_path):
    path = write_small(tmp_path, ("[1, 4, 16]\ndefault = 4", '["a", "b"]\ndefault = "b"'))
    maker = read_kernel(path)
    assert maker.start["ipt"] == 1
    assert maker.values(maker.start)["ipt"] == "b"
    assert maker.spelled(maker.start) == {"ipt": "b", "tpb": "128"}


def test_a_name_is_one_in_cpp_too(tmp_path):
    (tmp_path / "2-d größe.toml").write_bytes(write_small(tmp_path).read_bytes())
    maker = read_kernel(tmp_path / "2-d größe.toml")
    assert (maker.name, maker.scope) == ("own.kernel_2_d_gr__e", "kernel_2_d_gr__e_tuning")
    path = write_small(tmp_path, ('"add.cu"', '"add.cu"\nname = "mine"'))
    assert read_kernel(path).scope == "mine_tuning"


def test_strategies_have_what_they_do_not_say_of_the_kernel(tmp_path):
    maker = read_kernel(write_saxpy(tmp_path))
    assert [(one.name, one.block, one.shared, one.memory) for one in maker.given.ways] == [
        ("each_its_own", "threads", "0", "device"),
        ("stride", "threads", "0", "device"),
        ("each_its_own_managed", "threads", "0", "managed"),
        ("stride_managed", "threads", "0", "managed"),
    ]
    assert maker.spelled(maker.start) == {
        "strategy": "each_its_own", "threads": "256", "items": "1"
    }  # fmt: skip
    with pytest.raises(InputError, match=r"strategy = 7 is none of its values"):
        maker.values({"strategy": 7, "threads": 256, "items": 1})
    with pytest.raises(InputError, match=r"it breaks strategy == 0 \|\| items <= 4"):
        maker.values({"strategy": 1, "threads": 256, "items": 8})


ANY = 'type = "int"\nvalue = "1"\n'
IPT = "[1, 4, 16]\ndefault = 4"
SIZES = "[[size]]\nelements = 1000\n"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"tpb"', '"tpb * warps"', "block: warps is not known"),
        ('"tpb"', '"block"', "block: block is not known"),
        ("resident * 2", "registers", "grid: registers is not known"),
        ('"tpb * 4"', '"tpb * resident"', "shared: resident is not known"),
        ("tpb * ipt <=", "tpb * elements <=", "constraints: elements is not known"),
        ("[buffer.out]", '[buffer.out]\ncount = "tpb"', "buffer.out.count: tpb is not known"),
        ('block = "tpb"', 'block = "tpb"\ntraffic = "8 * tpb"', "traffic: tpb is not known"),
        ('"tpb"', '"tpb.x"', "block: 'tpb.x' is no expression"),
        ('"add.cu"', '"sub.cu"', "there is no sub.cu beside it"),
        ('"add.cu"', '"add.cu"\nheader = "x.cuh"', "there is no x.cuh beside it"),
        ('"add.cu"', '"../add.cu"', "kernel: it is no path of a file below"),
        ("default = 4", "default = 5", "parameter.ipt: default: 5 is none of its"),
        ("default = 4", 'default = "a"', "default: a is none of its values"),
        (IPT, '["a", "b"]\ndefault = 1', "default: 1 is none of its values"),
        (IPT, '["a", "a"]', "a value is there twice"),
        (IPT, "[2, 2]", "a value is there twice"),
        (IPT, "[]", "it has no value"),
        (IPT, '"9:1:1"', "it has no value"),
        (IPT, '"0:2000000:1"', "it has too many values"),
        (IPT, '"1 to 9"', "'1 to 9' is none of 32:1024:32, powers 32:1024, warps"),
        (IPT, '"0:9999999999:5000000000"', "a value is no int"),
        (IPT, '"1:1000000:2"', "it has more than 1,000,000 variants"),
        (IPT, '["a", "b; c"]', "'b; c' is no name of a type"),
        ("<= 1024", "<= 100", "cannot be: it breaks tpb * ipt <= 100"),
        ("<= 1024", "<= 1024 / (ipt - 4)", "cannot be: tpb * ipt <= 1024 / (ipt - 4): integer di"),
        ("[scalar.one]", "[scalar.out]", "out is several things"),
        ("[scalar.one]", f"[scalar.tpb]\n{ANY}[scalar.one]", "tpb is several things"),
        ("[scalar.one]", f"[scalar.TUNE_BLOCK]\n{ANY}[scalar.one]", "TUNE_BLOCK is several things"),
        ("[scalar.one]", "[scalar.grid]", "grid is several things"),
        ("[scalar.one]", "[scalar.sms]", "sms is several things"),
        ("[scalar.one]", "[scalar.arena]", "arena is several things"),
        ('"one",', '"two",', "arguments: two is neither a buffer nor a scalar, nor elements"),
        ('["in", "out", "one", "elements"]', "[]", "arguments: it should have at least 1 item"),
        ("result = true", 'input = { how = "bytes" }', "no buffer is a result"),
        ("result = true", "", "it is neither an input nor a result"),
        ("result = true", "result = true\nmodified = true", "what is modified has an input"),
        ('"sorted" }', '"sorted" }\ntolerance = 0.1', "tolerance and same are said of a result"),
        ("result = true", 'result = true\ntolerance = 0.1\nsame = "x"', "exclude each other"),
        ('"sorted"', '"file"', 'file is said with how = "file", and only then'),
        ('function = "add<ipt>"\n', "", "function is missing"),
        ('value = "1"', 'value = "f()"', "'f()' is no number"),
        ('value = "1"', 'value = "\u0661"', "is no number"),
        ('value = "1"', 'value = "1f"', "'1f' is no number"),
        ("[parameter.ipt]", "[parameter.\"größe\"]", "parameter.größe: it should match"),
        ("[parameter.ipt]", "[parameter.int]", "int is a word of C++ and can be no name"),
        ("[buffer.in]", '[buffer."a b"]', "it should match pattern"),
        ("[scalar.one]", "[scalar.template]", "template is a word of C++ and can be no name"),
        ('"short"', '"sh ort"', "size[0].class: it should match pattern"),
        ('function = "add<ipt>"', 'function = "add(1)"', "'add(1)' is no name of a type"),
        ("elements = 70_001", "elements = 1000", "the same number of elements is there twice"),
        ("[[size]]\nelements = 70_001", "[[size]]\nelements = 0", "greater than or equal to 1"),
        (
            '"long"', '"long"\n[[size]]\nelements = 90_000\nclass = "short"',
            "size: sizes of a class stand between those of another one",
        ),
        ('block = "tpb"', 'block = "tpb"\nmemory = "texture"', "memory: it should be 'device'"),
        (SIZES, f'[[strategy]]\nname = "a"\nblocks = "1"\n{SIZES}', "unknown key strategy[0].bloc"),
        (SIZES, f'[[strategy]]\nname = "static"\n{SIZES}', "static is a word of C++"),
        (
            SIZES, f'[[strategy]]\nname = "a"\n[[strategy]]\nname = "a"\n{SIZES}',
            "is there twice",
        ),
        (
            SIZES, f'[[strategy]]\nname = "a"\n[[strategy]]\nname = "b"\ngrid = "x"\n{SIZES}',
            "grid: x is not known",
        ),
        ('kernel = "add.cu"', 'kernel = "add.cu"\nscript = "x"', "unknown key script"),
        ('kernel = "add.cu"', 'kernel = "add.cu"\nincludes = ["a>\\n"]', "includes[0]: it"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_place(tmp_path, old, new, told):
    assert told in refused(tmp_path, (old, new))


@pytest.mark.parametrize("key", ["kernel", "header"])
def test_a_file_of_a_kernel_is_no_link(tmp_path, key):
    (tmp_path / "link.cu").symlink_to("add.cu")
    line = '"link.cu"' if key == "kernel" else '"add.cu"\nheader = "link.cu"'
    assert "link.cu is a symbolic link" in refused(tmp_path, ('"add.cu"', line))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("TUNE_BLOCK tpb", "add.cu:1:1"),
        ("TUNE_BLOCK tpb 9:1:1", "the end 1 is before the start 9"),
        ("TUNE-BLOCK tpb 1:9:1", "'TUNE-BLOCK' is no macro name"),
        ("tpb tpb 128:512:128", "tpb is several things"),
        ("in tpb 128:512:128", "in is several things"),
        ("TUNE_BLOCK tpb 0:2147483646:1", "parameter.tpb: it has too many values"),
        ("TUNE_BLOCK class 1:9:1", "parameter.class: class is a word of C++"),
    ],
)
def test_a_line_that_cannot_be_is_refused_as_well(tmp_path, line, told):
    assert told in refused(tmp_path, source=ADD.replace("TUNE_BLOCK tpb 128:512:128", line))


def test_what_is_not_known_is_told_with_what_is(tmp_path):
    told = refused(tmp_path, ('"tpb"', '"x"'))
    assert "It has: best_block, elements, ipt, sms, tpb" in told


def test_random_numbers_lie_between_0_and_1_or_where_it_is_said(tmp_path):
    for how, fill in (
        ('how = "random"', "plain(to, count)"),
        ("least = -1, most = 2", "ranged(to, count, -1.0, 2.0)"),
    ):
        path = write_small(tmp_path, ('how = "sorted"', how))
        with taking_kernel(read_kernel(path)):
            *_, own = bound(VERSION)
            assert own.runs[0].buffers["in"].fill == fill
