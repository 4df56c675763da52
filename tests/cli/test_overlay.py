"""Overlays: written as `apply` writes, checked against a tree, and not used wrongly in silence."""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from policygen import rendering
from policygen.app import overlay as overlay_module
from policygen.app.overlay import MANIFEST, _try_out, _write, previous_overlay
from policygen.errors import InputError, ProcessError
from policygen.model.machine_code import Kernel
from policygen.model.overlays import Overlay
from tests.cli.test_apply import apply, planned, snapshot, written
from tests.cli.tuned import HEADER, LABEL, THREE, database, others, run
from tests.probing import TUNINGS, changed_tree, header, root
from tests.tiers import sampled, slow
from tests.toolchain import nvcc

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

PATH = f"{TUNINGS}/{HEADER}"
NAMESPACES = ["cub/util_namespace.cuh", "thrust/detail/config/namespace.h"]
FILES = sorted([MANIFEST, "README.md", "policygen-overlay-config.cmake", PATH, *NAMESPACES])


def overlay(capsys, tree, db, *more):
    arguments = ("--cub", tree, "--db", db, "--arch", "sm90", "-o", "tuned-cub", *more)
    return run(capsys, "overlay", *arguments)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def files(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def manifest(folder=Path("tuned-cub")):
    return json.loads((folder / MANIFEST).read_text())


@pytest.fixture(scope="session")
def made(tmp_path_factory, three):
    """An overlay for CUB 3.0.1, made once."""
    from policygen.cli.main import main

    folder = tmp_path_factory.mktemp("overlays") / "tuned-cub"
    arguments = ("--cub", root("3.0.1"), "--db", three, "--arch", "sm90", "-q", "-o", folder)
    assert main(["overlay", *map(str, arguments)]) == 0
    return folder


def preprocess(text, *flags):
    """What the compiler says of a unit; nothing if it takes it."""
    Path("unit.cu").write_text(text)
    command = [nvcc(), "-E", "-std=c++17", "-arch=sm_90", *flags, "-o", "unit.ii", "unit.cu"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode != 0) == ("error" in done.stderr)
    return done.stderr


def test_an_overlay_has_what_apply_writes_and_the_tree_stays(capsys, tree, three):
    before = snapshot(tree)
    status, out, err = overlay(capsys, tree, three)
    assert (status, others(err)) == (0, [])
    assert "proof: 1 workload changed as written, 3 that share an entry or inherit, 66 as\n" in out
    assert f"\nwritten: tuned-cub: {HEADER}\n" in out
    assert out.endswith("\nput it before CUB: -I tuned-cub; see tuned-cub/README.md\n")
    assert snapshot(tree) == before
    assert files(Path("tuned-cub")) == FILES
    data = (Path("tuned-cub") / PATH).read_bytes()
    assert data.endswith(written())
    comment = data.removesuffix(written()).decode()
    for words in (f"{THREE} T=I32 OffsetT=I32", LABEL, "Demo H200", sha256(three.read_bytes())):
        assert words in comment
    assert sha256(header("3.0.1", HEADER)) in comment


@pytest.mark.slow
def test_the_manifest_says_what_it_was_made_from(made, three):
    document = manifest(made)
    schema = json.loads((rendering.folder("schemas") / "json/overlay-1.schema.json").read_text())
    jsonschema.validate(document, schema)
    assert document["databases"] == {"three.db": sha256(three.read_bytes())}
    (result,) = document["results"]
    assert (result["variant"], result["target"]["header"]) == (LABEL, HEADER)
    assert (result["before"]["threads"], result["after"]["threads"]) == (320, 512)
    rows = {row["name"]: row for row in document["headers"]}
    assert list(rows) == [PATH, *NAMESPACES]
    for name, row in rows.items():
        assert row["original"] == sha256((root("3.0.1") / name).read_bytes())
        assert row["written"] == sha256((made / name).read_bytes())
        assert row["replaces"] == (name == PATH)
    assert str(root("3.0.1")) not in (made / MANIFEST).read_text()


@pytest.mark.slow
def test_a_saved_plan_gives_the_same_overlay(capsys, tree, three, made):
    plan = planned(capsys, tree, three)
    arguments = ("--cub", tree, "--plan", plan, "-o", "tuned-cub", "-q")
    assert run(capsys, "overlay", *arguments)[0] == 0
    same = [name for name in FILES if name != MANIFEST]
    assert [(Path("tuned-cub") / n).read_bytes() for n in same] == [
        (made / n).read_bytes() for n in same
    ]


@pytest.mark.slow
def test_if_nothing_would_change_no_folder_is_written(capsys, tree, tmp_path):
    db = database(tmp_path / "none.db", {("I32", "I32"): None})
    status, out, _ = overlay(capsys, tree, db)
    assert status == 1
    assert out.endswith("nothing would change, so no overlay was written\n")
    assert not Path("tuned-cub").exists()


REFUSED = {
    "another GPU": (lambda tree, db: ("--arch", "sm100"), "Demo H200"),
    "no such benchmark": (lambda tree, db: ("-R", "cub.bench.nothing$"), "nothing matches"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_apply_refuses_is_refused_with_the_same_words(capsys, tree, three, case):
    make, words = REFUSED[case]
    given = ["--cub", tree, "--db", three, "--arch", "sm90"]
    more = make(tree, three)
    if more[0] in given:
        del given[given.index(more[0]) :][:2]
        given = ["--cub", tree, "--db", three]
    status, _, expected = run(capsys, "apply", *given, *more, "--diff")
    assert status == 2
    assert words in expected
    status, _, err = run(capsys, "overlay", *given, *more, "-o", "tuned-cub")
    assert (status, others(err)) == (2, others(expected))
    assert not Path("tuned-cub").exists()


@pytest.mark.slow
def test_a_header_that_cannot_be_proved_is_refused(capsys, tmp_path, three):
    own = b'#if __has_include("mine.h")\n#endif\n' + header("3.0.1", HEADER)
    tree = changed_tree(tmp_path, "3.0.1", {HEADER: own})
    status, _, expected = apply(capsys, tree, three, "--diff")
    assert status == 1
    status, _, err = overlay(capsys, tree, three)
    assert (status, others(err)) == (1, others(expected))
    assert not Path("tuned-cub").exists()


def with_earlier_header(made, data):
    """An overlay of one's own, whose manifest has a header that is no part of it any more."""
    shutil.copytree(made, "tuned-cub")
    (Path("tuned-cub") / TUNINGS / "tuning_scan.cuh").write_bytes(data)
    document = manifest()
    row = {"name": f"{TUNINGS}/tuning_scan.cuh", "original": "", "replaces": True}
    document["headers"].append(row | {"written": sha256(b"an earlier one")})
    (Path("tuned-cub") / MANIFEST).write_text(json.dumps(document))


@pytest.mark.slow
def test_an_own_folder_is_written_again(capsys, tree, three, made):
    with_earlier_header(made, b"an earlier one")
    assert overlay(capsys, tree, three)[0] == 0
    assert files(Path("tuned-cub")) == FILES


@pytest.mark.slow
def test_a_header_that_was_edited_is_not_removed(capsys, tree, three, made):
    with_earlier_header(made, b"mine")
    status, _, err = overlay(capsys, tree, three)
    assert status == 2
    assert "tuning_scan.cuh: was edited after policygen wrote it" in err
    assert f"{TUNINGS}/tuning_scan.cuh" in files(Path("tuned-cub"))


@pytest.mark.slow
def test_an_edited_header_is_not_written_over(capsys, tree, three, made):
    shutil.copytree(made, "tuned-cub")
    edited = Path("tuned-cub") / PATH
    edited.write_bytes(edited.read_bytes() + b"// mine")
    status, _, err = overlay(capsys, tree, three)
    assert status == 2
    assert f"{HEADER}: was edited after policygen wrote it" in err
    assert edited.read_bytes().endswith(b"// mine")
    assert overlay(capsys, tree, three, "--force")[0] == 0
    assert edited.read_bytes() == (made / PATH).read_bytes()


def test_a_folder_of_others_is_refused_before_anything_is_planned(capsys, tree, three):
    Path("tuned-cub").mkdir()
    Path("tuned-cub/notes.txt").write_text("mine")
    status, _, err = overlay(capsys, tree, three)
    assert (status, len(err.splitlines())) == (2, 2)
    assert "tuned-cub: exists already, and holds no overlay" in err


@pytest.mark.parametrize("name", ["../mine.h", "/etc/passwd", "cub/../../mine.h", "README.md"])
def test_a_manifest_leads_nowhere_else(capsys, tree, three, made, name):
    shutil.copytree(made, "tuned-cub")
    document = manifest()
    document["headers"][0]["name"] = name
    (Path("tuned-cub") / MANIFEST).write_text(json.dumps(document))
    _, _, checking = check(capsys, "tuned-cub", tree)
    status, _, writing = overlay(capsys, tree, three)
    assert status == 2
    for err in (checking, writing):
        assert "is not a manifest of an overlay: headers[0].name" in err


# Whether it fits.


def check(capsys, folder, tree):
    return run(capsys, "overlay", "--check", folder, "--cub", tree)


def test_an_overlay_fits_the_tree_that_it_was_made_for(capsys, tree, made):
    status, out, _ = check(capsys, made, tree)
    assert (status, out.splitlines()[-1]) == (0, f"{made} fits CUB 3.0.1")


def test_an_overlay_does_not_fit_another_version(capsys, made):
    status, out, _ = check(capsys, made, root("3.2.0"))
    assert status == 1
    assert "the overlay is for CUB 3.0.1, and the tree is CUB 3.2.0" in out


def test_an_overlay_does_not_fit_a_tree_with_another_header(capsys, tmp_path, made):
    other = header("3.0.1", HEADER) + b"// another\n"
    tree = changed_tree(tmp_path, "3.0.1", {HEADER: other})
    status, out, _ = check(capsys, made, tree)
    assert status == 1
    assert f"{PATH}: the tree's is not the one" in " ".join(out.split())


def test_an_overlay_that_was_edited_is_reported(capsys, tree, made):
    shutil.copytree(made, "tuned-cub")
    with (Path("tuned-cub") / PATH).open("a") as file:
        file.write("// mine\n")
    (Path("tuned-cub") / NAMESPACES[0]).unlink()
    status, out, _ = check(capsys, "tuned-cub", tree)
    assert status == 1
    assert f"{HEADER} is not as policygen wrote it" in " ".join(out.split())
    assert "util_namespace.cuh is missing" in " ".join(out.split())


def test_a_folder_without_a_manifest_is_no_overlay(capsys, tree):
    status, _, err = check(capsys, tree, tree)
    assert status == 2
    assert f"is not an overlay: {MANIFEST} is missing" in err


# What the preprocessor notices.

UNIT = "#include <cub/device/device_partition.cuh>\n"


def test_the_compiler_takes_it_before_its_tree(made):
    assert preprocess(UNIT, f"-I{made}", f"-I{root('3.0.1')}") == ""
    text = Path("unit.ii").read_text()
    tag = Overlay.model_validate(manifest(made)).tag
    assert f"inline namespace {tag} {{" in text
    assert re.search(r"int threads += 512;", text)


def test_another_version_of_cub_stops_the_compiler(made):
    err = preprocess(UNIT, f"-I{made}", f"-I{root('3.2.0')}")
    assert '#error "This policygen overlay is for CUB 3.0.1: make it again for your tree' in err


@pytest.mark.slow
def test_a_second_overlay_stops_the_compiler(made, tmp_path):
    second = tmp_path / "second"
    tag, number = manifest(made)["tag"], "0123456789ab"
    for name in FILES:
        data = (made / name).read_text().replace(tag.removeprefix("policygen_"), number)
        (second / name).parent.mkdir(parents=True, exist_ok=True)
        (second / name).write_text(data)
    err = preprocess(UNIT, f"-I{made}", f"-I{second}", f"-I{root('3.0.1')}")
    assert '#error "Two policygen overlays stand on the include path' in err
    assert "#error" not in preprocess(UNIT, f"-I{second}", f"-I{root('3.0.1')}")


def test_a_tuning_header_without_its_namespace_stops_the_compiler(made):
    unit = "#include <cub/util_namespace.cuh>\n" + UNIT
    part = Path("part") / PATH
    part.parent.mkdir(parents=True)
    part.write_bytes((made / PATH).read_bytes())
    err = preprocess(unit, "-Ipart", f"-I{root('3.0.1')}")
    assert '#error "This tuning header is part of a policygen overlay, and another' in err


@pytest.mark.slow
def test_comments_of_strangers_stay_comments(capsys, tree, tmp_path):
    db = tmp_path / "evil \\\n#error out.db"
    database(db)
    status, _, _ = overlay(capsys, tree, db, "-q")
    assert status == 0
    comment = (Path("tuned-cub") / PATH).read_bytes().removesuffix(written()).decode()
    lines = comment.partition("#include")[0].splitlines()
    assert all(line.startswith("//") or not line for line in lines)
    assert not re.search(r"\\$", comment.partition("#include")[0], re.M)


# What it changes in a program.

PROGRAM = """
#include <cub/device/device_partition.cuh>
#include <cub/device/device_reduce.cuh>
struct below { __host__ __device__ bool operator()(int a) const { return a < 7; } };
int part(void* storage, size_t& bytes, int* in, int n)
{
  return cub::DevicePartition::If(storage, bytes, in, in, in, in, in, n, below{}, below{});
}
int sum(void* storage, size_t& bytes, int* in, int n)
{
  return cub::DeviceReduce::Sum(storage, bytes, in, in, n);
}
"""
OTHERS = PROGRAM.replace("return cub::DevicePartition::If", "return 0; //")


def prove(capsys, made, *more):
    status, out, err = run(capsys, "overlay", made, "--prove", *more)
    return status, " ".join(out.split()), err


@slow
def test_a_program_is_compared_kernel_by_kernel(capsys, made):
    Path("program.cu").write_text(PROGRAM)
    flags = ("-std=c++17", "-I", root("3.0.1"), "-c", "-gencode", "arch=compute_80,code=sm_80")
    status, out, _ = prove(capsys, made, "program.cu", "-v", "--", *flags)
    assert status == 0
    assert re.search(r"changed DeviceThreeWayPartitionKernel\S* .*?threads 320 → 512; ", out)
    assert f"{THREE} T=I32 OffsetT=I32: {LABEL}" in out
    assert re.search(r"same DeviceReduceKernel<\S+ .*?threads 256", out)
    assert re.search(r"of \d+ kernels 1 with another policy, \d+ with the same machine code", out)


@slow
def test_a_program_that_an_overlay_does_not_touch_is_reported(capsys, made):
    Path("program.cu").write_text(OTHERS)
    flags = ("-std=c++17", "-I", root("3.0.1"))
    status, out, _ = prove(capsys, made, "program.cu", "--", *flags)
    assert status == 1
    assert re.search(r"the overlay touches none of \d+ kernels of this program on sm90", out)
    assert "no kernel of CUB" not in out


@pytest.mark.parametrize(("registers", "said"), [(64, False), (86, True)])
def test_it_is_said_if_fewer_threads_fit(capsys, made, monkeypatch, registers, said):
    def compiled(unit, flags, *_, **__):
        count, threads = (registers, 512) if "tuned-cub" in " ".join(flags) else (80, 384)
        resources = {"REG": count}
        return [Kernel(name="_Z1kv", code=(str(count),), resources=resources, max_threads=threads)]

    monkeypatch.setattr(overlay_module, "compile_unit", compiled)
    Path("program.cu").write_text(PROGRAM)
    _, out, _ = prove(capsys, made, "program.cu", "--", "-std=c++17")
    assert f"registers 80 → {registers}; launch bound 384 → 512; resident threads 768 →" in out
    assert ("a multiprocessor holds fewer threads of 1 kernel now" in out) == said


@slow
def test_an_overlay_behind_its_tree_is_reported(capsys, made):
    Path("program.cu").write_text(PROGRAM)
    command = f"/usr/bin/nvcc -std=c++17 -I{root('3.0.1')} -I{made} -ccbin x -c program.cu -o a.o"
    row = {"directory": str(Path.cwd()), "command": command, "file": "program.cu"}
    Path("compile_commands.json").write_text(json.dumps([row]))
    status, out, _ = prove(capsys, made, "compile_commands.json")
    assert status == 1
    assert "program.cu: no kernel of CUB in it was compiled with the overlay" in out
    assert "a folder with CUB comes before the overlay on its include path" in out
    assert "not passed to the compiler: -ccbin x" in out


# As PyTorch: a namespace of its own for CUB, and another one that is called cub, too.
WRAPPED = PROGRAM.replace(
    "struct below",
    "namespace cub = mine::cub;\n"
    "namespace own::cub { __global__ void kernel(int* out) { *out = 1; } }\n"
    "struct below",
)


@slow
@pytest.mark.parametrize("macro", ["CUB_WRAPPED_NAMESPACE", "THRUST_CUB_WRAPPED_NAMESPACE"])
def test_a_program_with_a_namespace_of_its_own_for_cub_is_compared(capsys, made, macro):
    Path("program.cu").write_text(WRAPPED)
    flags = ("-std=c++17", "-I", root("3.0.1"), f"-D{macro}=mine")
    status, out, _ = prove(capsys, made, "program.cu", "-v", "--", *flags)
    assert status == 0
    assert re.search(r"changed DeviceThreeWayPartitionKernel\S* .*?threads 320 → 512; ", out)
    assert "same kernel threads any" in out
    assert re.search(r"of \d+ kernels 1 with another policy, \d+ with the same machine code", out)


@slow
def test_a_program_for_another_version_of_cub_does_not_compile(capsys, made):
    Path("program.cu").write_text(PROGRAM)
    status, _, err = prove(capsys, made, "program.cu", "--", "-std=c++17", "-I", root("3.2.0"))
    assert status == 2
    assert "This policygen overlay is for CUB 3.0.1" in err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--prove", "x.cu"), "Missing argument 'FOLDER'"),
        (("tuned-cub",), "it is for --prove"),
        ((), "Missing option '-o'"),
        (
            ("nothing", "--prove", "x.cu"),
            "nothing is not an overlay: policygen-overlay.json is missing",
        ),
    ],
)
def test_usage_says_what_is_missing(capsys, words, text):
    status, _, err = run(capsys, "overlay", *words)
    assert (status, text in err) == (2, True)


@pytest.fixture(scope="session")
def built(tmp_path_factory, made):
    """The program as an object, a static library, a shared object, and with the overlay."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "program.cu").write_text(PROGRAM)
    for name, includes in (("plain", ()), ("tuned", (f"-I{made}",))):
        command = [nvcc(), "-c", "-arch=sm_90", "-std=c++17", "-w", "-Xcompiler=-fPIC", *includes]
        command += [f"-I{root('3.0.1')}", "-o", folder / f"{name}.o", folder / "program.cu"]
        subprocess.run(command, check=True)
    plain = folder / "plain.o"
    subprocess.run(["ar", "rc", folder / "libplain.a", plain], check=True)
    subprocess.run(["gcc", "-shared", "-o", folder / "libplain.so", plain], check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(["plain.o", "libplain.a", "libplain.so"], "plain.o"))
def test_calls_are_listed_of_objects_and_libraries(capsys, built, name):
    status, out, _ = run(capsys, "calls", built / name, "--cub", root("3.0.1"), "--json")
    document = json.loads(out)
    assert (status, document["arch"]) == (0, "sm90")
    by_algorithm = {call["algorithm"]: call for call in document["calls"]}
    assert by_algorithm.keys() == {"three_way_partition", "reduce"}
    part, total = by_algorithm["three_way_partition"], by_algorithm["reduce"]
    names = {kernel["name"]: kernel["threads"] for kernel in part["kernels"]}
    assert names["DeviceThreeWayPartitionKernel"] == part["values"]["threads"] == 320
    assert (part["cub"], part["overlay"], part["status"]) == ("3.0.1", None, "tuned")
    assert (part["benchmark"], part["axes"]["T"]) == (THREE, "I32")
    assert part["command"].startswith(f"policygen tune -R '{THREE}$' -a T=I32 ")
    assert part["command"].endswith(" --cub 3.0.1 --overlay tuned-cub")
    assert (total["benchmark"], total["axes"]["T"]) == ("cub.bench.reduce.sum", "I32")


@slow
def test_calls_say_which_overlay_they_were_compiled_with(capsys, built, made):
    status, out, _ = run(capsys, "calls", built / "tuned.o", "--cub", root("3.0.1"))
    assert status == 0
    text = " ".join(out.split())
    assert f"CUB 3.0.1 with overlay {manifest(made)['tag']}" in text
    assert "DeviceThreeWayPartitionKernel (512 threads)" in text


@slow
def test_calls_in_a_namespace_of_the_program_need_the_tree(capsys, made):
    Path("program.cu").write_text(WRAPPED)
    flags = ("-std=c++17", "-I", made, "-I", root("3.0.1"), "-DCUB_WRAPPED_NAMESPACE=mine")
    command = ("calls", "program.cu", "--arch", "sm90", "-v")
    status, _, err = run(capsys, *command, "--", *flags)
    assert status == 2
    assert "so that no kernel names its version\n  Name the tree that it was compiled with" in err
    status, out, _ = run(capsys, *command, "--cub", root("3.0.1"), "--", *flags)
    assert status == 0
    text = " ".join(out.split())
    assert f"of unknown version with overlay {manifest(made)['tag']}; without it: tuned (" in text
    assert "DeviceThreeWayPartitionKernel (512 threads)" in text
    assert "so that no kernel names its version: taken as CUB 3.0.1" in text
    assert "1 kernel of CUB and Thrust without a policy in the name" in text


@slow
def test_calls_of_a_tree_with_another_version_are_unknown(capsys, built):
    status, out, _ = run(capsys, "calls", built / "plain.o", "--cub", root("3.2.0"))
    assert status == 0
    assert "unknown: the program has CUB 3.0.1, and --cub is CUB 3.2.0" in " ".join(out.split())


@slow
def test_an_object_without_code_for_the_architecture_is_refused(capsys, built, tmp_path):
    status, _, err = run(capsys, "calls", built / "plain.o", "--arch", "sm80")
    assert status == 2
    assert "holds no machine code for sm80\n  It has some for: sm90." in err
    (tmp_path / "none.c").write_text("int none;")
    subprocess.run(["gcc", "-c", "-o", tmp_path / "none.o", tmp_path / "none.c"], check=True)
    status, _, err = run(capsys, "calls", tmp_path / "none.o")
    assert status == 2
    assert "none.o holds no machine code for GPUs" in err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("missing.o",), "cannot read missing.o: No such file"),
        (("program.cu",), "no architecture is given"),
        (("program.cu", "--", "-arch=sm_80", "-gencode=arch=compute_90,code=sm_90"), "no architec"),
        (("missing.cu", "--arch", "sm90"), "cannot read missing.cu: No such file"),
        (("missing.cu", "--", "-arch", "sm_90"), "cannot read missing.cu: No such file"),
    ],
)
def test_calls_say_what_is_missing(capsys, words, text):
    Path("program.cu").write_text(OTHERS)
    status, _, err = run(capsys, "calls", *words)
    assert (status, text in err) == (2, True)


def test_an_overlay_is_a_folder_of_its_own(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"mine")
    with pytest.raises(InputError, match=r"cannot write an overlay to .*file: it is a file"):
        previous_overlay(path)
    with pytest.raises(InputError, match=r"cannot write to .*file: Not a directory"):
        _write(path, {"cub/a.cuh": b""}, None, force=False)
    previous = SimpleNamespace(headers=[SimpleNamespace(name="file", written="")])
    with pytest.raises(InputError, match="file: was edited after policygen wrote it\n  Save it"):
        _write(tmp_path, {}, previous, force=False)
    assert path.read_bytes() == b"mine"


def test_headers_that_do_not_compile_before_the_tree_are_no_overlay(tmp_path, monkeypatch):
    def refuse(command, **_):
        raise ProcessError(command[:1], 1, "error: a macro")

    monkeypatch.setattr(overlay_module, "run", refuse)
    monkeypatch.setattr(overlay_module, "find_toolchain", lambda: SimpleNamespace(nvcc="nvcc"))
    tree = SimpleNamespace(title="CUB 3.6.0", root=str(tmp_path), include_folders=())
    overlay = SimpleNamespace(replaced=(), tag="policygen_0", arch="sm90")
    with pytest.raises(InputError) as caught:
        _try_out(tree, overlay, {})
    assert str(caught.value) == (
        f"an overlay does not work with CUB 3.6.0 in {tmp_path}: nvcc failed with status 1:"
        " error: a macro\n  Use policygen apply on a copy of the tree."
    )
