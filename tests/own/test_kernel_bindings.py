"""What a kernel's file and its `%RANGE%` lines say, as bindings; and what they cannot say."""

import pytest

from policygen.app.own_workloads import is_kernel
from policygen.bindings.load import bound
from policygen.errors import InputError, PolicygenError
from policygen.headers.benchmark_sources import read_kernel
from policygen.model.trees import BoundVersion
from tests.own.kernels import ADD, EXAMPLES, write_saxpy, write_small
from tests.own.written import write_particles

VERSION = "3.6.0"


def refused(folder, *changed, **more):
    with pytest.raises(PolicygenError) as raised:
        bound(BoundVersion(VERSION, read_kernel(write_small(folder, *changed, **more))))
    told = str(raised.value)
    assert str(folder) in told or "add.cu" in told
    return told


def test_it_is_an_algorithm_of_the_version_that_has_it(tmp_path):
    before = bound(BoundVersion(VERSION))
    path = write_small(tmp_path)
    maker = read_kernel(path)
    *others, own = bound(BoundVersion(VERSION, maker))
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
    assert bound(BoundVersion(VERSION)) == before


def test_a_kernels_file_is_told_from_a_workloads(tmp_path):
    assert is_kernel(write_small(tmp_path))
    assert not is_kernel(write_particles(tmp_path))


@pytest.mark.parametrize("name", ["saxpy", "block_sum"])
def test_the_examples_are_read(name):
    maker = read_kernel(EXAMPLES / f"{name}/{name}.toml")
    assert maker.names[0].startswith(f"own.{name}")
    assert bound(BoundVersion(VERSION, maker))[-1].runs


def test_what_a_file_says_of_a_declared_macro_goes_before_its_line(tmp_path):
    path = write_small(tmp_path, ("[buffer.in]", "[parameter.tpb]\nvalues = [64]\n[buffer.in]"))
    one = read_kernel(path).given.parameter["tpb"]
    assert (one.macro, one.numbers, one.start) == ("TUNE_BLOCK", (64,), 64)


def test_declared_macros_alone_are_enough(tmp_path):
    nothing = "[parameter.ipt]\nvalues = [1, 4, 16]\ndefault = 4\n"
    changed = ((nothing, ""), ("add<ipt>", "add"), ("tpb * ipt", "tpb"))
    maker = read_kernel(write_small(tmp_path, *changed))
    assert bound(BoundVersion(VERSION, maker))[-1].runs
    assert maker.start == {"tpb": 128}
    told = refused(tmp_path, *changed[:2], ("tpb * ipt", "4"), ("tpb", "32"), source="")
    assert "no parameter varies" in told
    assert "Add [parameter.NAME], several [[strategy]], or %RANGE% lines in add.cu." in told


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
    maker = read_kernel(path)
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
    assert {label: member.choices for label, member in maker.members.items()} == {
        "ipt": ("a", "b"),
        "tpb": None,
    }


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
    with pytest.raises(InputError, match=r"strategy = 7 is not one of its values"):
        maker.values({"strategy": 7, "threads": 256, "items": 1})
    with pytest.raises(InputError, match=r"it violates strategy == 0 \|\| items <= 4"):
        maker.values({"strategy": 1, "threads": 256, "items": 8})


ANY = 'type = "int"\nvalue = "1"\n'
IPT = "[1, 4, 16]\ndefault = 4"
SIZES = "[[size]]\nelements = 1000\n"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"tpb"', '"tpb * warps"', "block: unknown name warps"),
        ('"tpb"', '"block"', "block: unknown name block"),
        ("resident * 2", "registers", "grid: unknown name registers"),
        ('"tpb * 4"', '"tpb * resident"', "shared: unknown name resident"),
        ("tpb * ipt <=", "tpb * elements <=", "constraints: unknown name elements"),
        ("[buffer.out]", '[buffer.out]\ncount = "tpb"', "buffer.out.count: unknown name tpb"),
        ('block = "tpb"', 'block = "tpb"\ntraffic = "8 * tpb"', "traffic: unknown name tpb"),
        ('"tpb"', '"tpb.x"', "block: 'tpb.x' is not an expression"),
        ('"add.cu"', '"sub.cu"', "there is no sub.cu next to it"),
        ('"add.cu"', '"add.cu"\nheader = "x.cuh"', "there is no x.cuh next to it"),
        ('"add.cu"', '"../add.cu"', "kernel: it is not a path below"),
        ("default = 4", "default = 5", "parameter.ipt: default: 5 is not one of its"),
        ("default = 4", 'default = "a"', "default: a is not one of its values"),
        (IPT, '["a", "b"]\ndefault = 1', "default: 1 is not one of its values"),
        (IPT, '["a", "a"]', "a value appears twice"),
        (IPT, "[2, 2]", "a value appears twice"),
        (IPT, "[]", "it has no value"),
        (IPT, '"9:1:1"', "it has no value"),
        (IPT, '"0:2000000:1"', "it has too many values"),
        (IPT, '"1 to 9"', "'1 to 9' does not have the form 32:1024:32, powers 32:1024, or warps"),
        (IPT, '"0:9999999999:5000000000"', "a value is not an int"),
        (IPT, '"1:1000000:2"', "it has more than 1,000,000 variants"),
        (IPT, '["a", "b; c"]', "'b; c' is not the name of a type"),
        ("<= 1024", "<= 100", "are not valid: it violates tpb * ipt <= 100"),
        ("<= 1024", "<= 1024 / (ipt - 4)", "are not valid: tpb * ipt <= 1024 / (ipt - 4): int"),
        ("[scalar.one]", "[scalar.out]", "out has several meanings"),
        ("[scalar.one]", f"[scalar.tpb]\n{ANY}[scalar.one]", "tpb has several meanings"),
        ("[scalar.one]", f"[scalar.TUNE_BLOCK]\n{ANY}[scalar.one]", "BLOCK has several meanings"),
        ("[scalar.one]", "[scalar.grid]", "grid has several meanings"),
        ("[scalar.one]", "[scalar.sms]", "sms has several meanings"),
        ("[scalar.one]", "[scalar.arena]", "arena has several meanings"),
        ('"one",', '"two",', "arguments: two is neither a buffer nor a scalar, nor elements"),
        ('["in", "out", "one", "elements"]', "[]", "arguments: it should have at least 1 item"),
        ("result = true", 'input = { how = "bytes" }', "no buffer is a result"),
        ("result = true", "", "it is neither an input nor a result"),
        ("result = true", "result = true\nmodified = true", "a modified buffer needs an input"),
        ('"sorted" }', '"sorted" }\ntolerance = 0.1', "tolerance and same belong to a result"),
        ("result = true", 'result = true\ntolerance = 0.1\nsame = "x"', "exclude each other"),
        ('"sorted"', '"file"', 'file belongs to how = "file"'),
        ('function = "add<ipt>"\n', "", "function is missing"),
        ('value = "1"', 'value = "f()"', "'f()' is not a number"),
        ('value = "1"', 'value = "\u0661"', "is not a number"),
        ('value = "1"', 'value = "1f"', "'1f' is not a number"),
        ("[parameter.ipt]", "[parameter.\"größe\"]", "parameter.größe: it should match"),
        ("[parameter.ipt]", "[parameter.int]", "int is a C++ keyword and cannot be a name"),
        ("[buffer.in]", '[buffer."a b"]', "it should match pattern"),
        ("[scalar.one]", "[scalar.template]", "template is a C++ keyword and cannot be a name"),
        ('"short"', '"sh ort"', "size[0].class: it should match pattern"),
        ('function = "add<ipt>"', 'function = "add(1)"', "'add(1)' is not the name of a type"),
        ("elements = 70_001", "elements = 1000", "the same number of elements appears twice"),
        ("[[size]]\nelements = 70_001", "[[size]]\nelements = 0", "greater than or equal to 1"),
        (
            '"long"', '"long"\n[[size]]\nelements = 90_000\nclass = "short"',
            "size: the sizes of one class lie between those of another",
        ),
        ('block = "tpb"', 'block = "tpb"\nmemory = "texture"', "memory: it should be 'device'"),
        (SIZES, f'[[strategy]]\nname = "a"\nblocks = "1"\n{SIZES}', "unknown key strategy[0].bloc"),
        (SIZES, f'[[strategy]]\nname = "static"\n{SIZES}', "static is a C++ keyword"),
        (
            SIZES, f'[[strategy]]\nname = "a"\n[[strategy]]\nname = "a"\n{SIZES}',
            "appears twice",
        ),
        (
            SIZES, f'[[strategy]]\nname = "a"\n[[strategy]]\nname = "b"\ngrid = "x"\n{SIZES}',
            "grid: unknown name x",
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
        ("TUNE-BLOCK tpb 1:9:1", "'TUNE-BLOCK' is not a macro name"),
        ("tpb tpb 128:512:128", "tpb has several meanings"),
        ("in tpb 128:512:128", "in has several meanings"),
        ("TUNE_BLOCK tpb 0:2147483646:1", "parameter.tpb: it has too many values"),
        ("TUNE_BLOCK class 1:9:1", "parameter.class: class is a C++ keyword"),
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
        *_, own = bound(BoundVersion(VERSION, read_kernel(path)))
        assert own.runs[0].buffers["in"].fill == fill
