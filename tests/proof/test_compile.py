# ruff: noqa: E501  a row of a table is one line
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.proof import compile as compiling
from policygen.proof.compile import RefusedError, TranslationUnit, compile_all
from policygen.proof.toolchain import Toolchain, find_toolchain, to_install
from policygen.steps import HowFar, Progress

FAKE = Toolchain(Path("/opt/nvcc"), "13.2.51", ("sm90",))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in a folder whose name needs quoting."""
    folder = tmp_path / "a cache: here"
    monkeypatch.setenv("POLICYGEN_CACHE", str(folder))
    return folder


def kinds(cache: Path) -> dict[str, int]:
    """How many entries of a kind are kept."""
    return {folder.name: len(list(folder.iterdir())) for folder in cache.iterdir()}


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """An include folder whose name needs quoting, with a header."""
    folder = tmp_path / "include of $me # (one)"
    folder.mkdir()
    (folder / "answer.cuh").write_text("#define ANSWER 42\n")
    return folder


TEXT = "#include <answer.cuh>\n__device__ int answer = ANSWER;\n"


def unit(
    *includes: Path, text: str = TEXT, arch: str = "sm90", name: str = "one"
) -> TranslationUnit:
    return TranslationUnit(name, text, lambda: text, tuple(map(str, includes)), arch)


def ask(
    units: list[TranslationUnit], toolchain: Toolchain, progress: Progress | None = None
) -> list[str | PolicygenError]:
    """All of the PTX."""
    return compile_all(units, toolchain, str, writer="test", progress=progress)


def forbidden(*_: object, **__: object) -> str:
    raise AssertionError("nvcc is started")


# A compiler.


@pytest.mark.nvcc
def test_a_unit_is_compiled_once(
    cache: Path, include: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain = find_toolchain()
    (first,) = ask([unit(include)], toolchain)
    assert isinstance(first, str)
    assert ".target sm_90" in first
    assert "answer = 42;" in first
    assert kinds(cache) == {"probe": 1, "reads": 1, "units": 0}
    os.utime(include / "answer.cuh")
    monkeypatch.setattr(compiling, "run", forbidden)
    same = TranslationUnit("another name", TEXT, forbidden, (str(include),), "sm90")
    assert ask([same], toolchain) == [first]


@pytest.mark.nvcc
def test_another_content_of_a_header_is_compiled_again(cache: Path, include: Path) -> None:
    toolchain = find_toolchain()
    for number, kept in ((42, 1), (43, 2), (42, 2)):
        (include / "answer.cuh").write_text(f"#define ANSWER {number}\n")
        (text,) = ask([unit(include)], toolchain)
        assert f"answer = {number};" in str(text)
        assert kinds(cache) == {"probe": kept, "reads": 1, "units": 0}


@pytest.mark.nvcc
def test_the_same_headers_at_another_place_are_the_same_unit(
    cache: Path, include: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain = find_toolchain()
    first = ask([unit(include)], toolchain)
    copied = shutil.copytree(include, tmp_path / "elsewhere")
    monkeypatch.setattr(compiling, "run", forbidden)
    assert ask([unit(copied)], toolchain) == first
    empty = tmp_path / "empty"
    empty.mkdir()
    assert ask([unit(empty, copied)], toolchain) == first


@pytest.mark.nvcc
def test_a_header_that_shadows_another_is_noticed(
    cache: Path, include: Path, tmp_path: Path
) -> None:
    toolchain = find_toolchain()
    first = tmp_path / "first"
    first.mkdir()
    ask([unit(first, include)], toolchain)
    (first / "answer.cuh").write_text("#define ANSWER 43\n")
    (text,) = ask([unit(first, include)], toolchain)
    assert "answer = 43;" in str(text)


@pytest.mark.nvcc
def test_a_header_that_asks_for_a_file_is_noticed_where_it_is(cache: Path, include: Path) -> None:
    """No list of what was read has the file: it is not read."""
    toolchain = find_toolchain()
    text = "#if __has_include(<late.cuh>)\n#define ANSWER 43\n#else\n#define ANSWER 42\n#endif\n"
    (include / "answer.cuh").write_text(text)
    (before,) = ask([unit(include)], toolchain)
    (include / "late.cuh").touch()
    (after,) = ask([unit(include)], toolchain)
    assert "answer = 42;" in str(before)
    assert "answer = 43;" in str(after)


@pytest.mark.nvcc
def test_units_come_in_order_each_for_its_architecture(cache: Path, include: Path) -> None:
    asked = [unit(include, arch=arch, name=arch) for arch in ("sm90", "sm75", "sm120", "sm90")]
    told: list[HowFar] = []
    texts = ask(asked, find_toolchain(), progress=told.append)
    targets = [text.partition(".target sm_")[2].split()[0] for text in map(str, texts)]
    assert targets == ["90", "75", "120", "90"]
    assert (told[0].done, told[-1].done) == (0, 4)
    assert [step.done for step in told] == sorted(step.done for step in told)
    assert {(step.phase, step.total) for step in told} == {("asking the compiler", 4)}
    assert {name for step in told for name in step.running} <= {"sm90", "sm75", "sm120"}
    assert kinds(cache) == {"probe": 3, "reads": 3, "units": 0}, "two equal units are one"


@pytest.mark.nvcc
def test_two_processes_may_compile_the_same_at_once(cache: Path, include: Path) -> None:
    """The one that is done first takes nothing away from the other."""
    toolchain = find_toolchain()
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.extend(ask([unit(include)], toolchain)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(str, found))) == 1
    assert "answer = 42;" in str(found[0])
    assert kinds(cache) == {"probe": 1, "reads": 1, "units": 0}


BROKEN = "template <class T> struct broken { static constexpr int value = T::nothing; };\n"


@pytest.mark.nvcc
def test_a_refused_unit_shows_a_command_that_can_be_repeated(cache: Path, include: Path) -> None:
    (include / "answer.cuh").write_text(BROKEN + "#define ANSWER broken<int>::value\n")
    fine = unit(text="__device__ int fine = 1;\n")
    refused, text = ask([unit(include), fine], find_toolchain())
    assert isinstance(refused, RefusedError)
    assert isinstance(text, str)
    assert refused.exit_code == 2
    assert refused.stderr.splitlines()[0].startswith(f"{include}/answer.cuh(1): error: ")
    command, *rows = str(refused).splitlines()
    shown = command.removeprefix(f"command failed with status {refused.status}: ")
    again = subprocess.run(shown, shell=True, check=False, capture_output=True, text=True)
    assert again.returncode == refused.status != 0
    assert rows[0].strip() in again.stderr
    assert f"-I'{include}'" in shown or f"'-I{include}'" in shown
    assert not list(cache.rglob("*.ii"))


@pytest.mark.nvcc
def test_what_was_refused_is_compiled_when_it_is_repaired(cache: Path, include: Path) -> None:
    toolchain = find_toolchain()
    (include / "answer.cuh").write_text("#error no answer\n")
    (refused,) = ask([unit(include)], toolchain)
    assert isinstance(refused, RefusedError)
    assert "no answer" in refused.stderr
    (include / "answer.cuh").write_text("#define ANSWER 7\n")
    (text,) = ask([unit(include)], toolchain)
    assert "answer = 7;" in str(text)


@pytest.mark.nvcc
def test_a_header_that_is_missing_is_refused(cache: Path) -> None:
    (refused,) = ask([unit()], find_toolchain())
    assert isinstance(refused, RefusedError)
    assert "answer.cuh: No such file or directory" in refused.stderr


@pytest.mark.nvcc
def test_a_header_that_never_begins_is_told_and_nothing_stays(
    cache: Path, include: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe: the compiler opens it by itself."""
    (include / "answer.cuh").unlink()
    os.mkfifo(include / "answer.cuh")
    monkeypatch.setattr(compiling, "SECONDS", 1.0)
    (error,) = ask([unit(include)], find_toolchain())
    assert isinstance(error, ProcessError)
    assert not isinstance(error, RefusedError)
    assert str(error).endswith(
        "main.cu\n  it did not finish within 1 seconds\n"
        "  Check whether a header includes a pipe or itself, or evaluates an endless constant"
        " expression."
    )
    assert list((cache / "units").iterdir()) == []


# What a compiler may do.


MADE = "// made of policygen_unit"
"""The mark of the unit is another one each time, and no part of the answer."""


def fake(monkeypatch: pytest.MonkeyPatch, behave) -> None:
    """A compiler that writes what one writes, after `behave` was called with its command."""

    def run(command: list[str], *, folder: Path, limit: float, install: str) -> str:
        assert (install, limit) == (to_install(), compiling.SECONDS)
        behave(command)
        source, made = command[-1], command[command.index("-o") + 1]
        assert folder == Path(made).parent
        (mark,) = re.findall(r"policygen_unit_\w+", Path(source).read_text())
        Path(made).write_text(f"// made of {mark}")
        kept = Path(command[command.index("--keep-dir") + 1]) / "main.cpp1.ii"
        kept.write_text(f'# 1 "{source}"\n# 1 "{__file__}" 1\n')
        return ""

    monkeypatch.setattr(compiling, "run", run)


def quiet(command: list[str]) -> None:
    pass


def test_the_command(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    fake(monkeypatch, commands.append)
    assert ask([unit(Path("/a"), Path("/b c"), arch="sm100")], FAKE) == [MADE]
    ((nvcc, *options),) = commands
    assert nvcc == "/opt/nvcc"
    assert options[:6] == [
        "-std=c++17",
        "-ptx",
        "-w",
        "-arch=sm_100",
        "-I/a",
        "-I/b c",
    ]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((unit(Path("/a"), text="// another"), FAKE), id="another text"),
        pytest.param((unit(Path("/a"), arch="sm75"), FAKE), id="another architecture"),
        pytest.param((unit(Path("/a")), Toolchain(FAKE.nvcc, "13.2.52", ())), id="another release"),
        pytest.param(
            (unit(Path("/a")), Toolchain(Path("/nvcc"), FAKE.version, ())), id="another nvcc"
        ),
    ],
)
def test_what_is_different_is_compiled(
    cache: Path, monkeypatch: pytest.MonkeyPatch, other: tuple[TranslationUnit, Toolchain]
) -> None:
    commands: list[list[str]] = []
    fake(monkeypatch, commands.append)
    for asked, toolchain in ((unit(Path("/a")), FAKE), other, (unit(Path("/a")), FAKE), other):
        ask([asked], toolchain)
    assert len(commands) == 2


@pytest.mark.parametrize("kind", ["probe", "reads"])
@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\xff{"),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes().replace(b"made", b"fake")[1:]),
    ],
)
def test_a_damaged_cache_is_made_anew(
    cache: Path, monkeypatch: pytest.MonkeyPatch, kind: str, damage
) -> None:
    commands: list[list[str]] = []
    fake(monkeypatch, commands.append)
    ask([unit()], FAKE)
    (path,) = (cache / kind).iterdir()
    damage(path)
    assert ask([unit()], FAKE) == [MADE]
    assert len(commands) == 2


def test_what_another_writer_kept_is_not_taken(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    fake(monkeypatch, commands.append)
    for writer in ("one", "two", "one"):
        compile_all([unit()], FAKE, str, writer=writer)
    assert len(commands) == 2


LONG = "\n".join(["note: of no use", "x.cuh(1): error: one", *(f"line {i}" for i in range(20))])


@pytest.mark.parametrize(
    ("stderr", "shown"),
    [
        ("x.cuh(1): error: one\n", "x.cuh(1): error: one"),
        ("warning: first\nx(1): error: two\n  at\n", "x(1): error: two\n  at"),
        ("nvcc fatal   : no such architecture\n", "nvcc fatal   : no such architecture"),
        ("", ""),
        (
            LONG,
            "\n".join(["x.cuh(1): error: one", *(f"line {i}" for i in range(11)), "… and 9 more lines"]),
        ),
    ],
)  # fmt: skip
def test_a_message_begins_with_the_first_error_and_says_what_is_left_out(
    cache: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, shown: str
) -> None:
    def fail(command: list[str]) -> None:
        raise ProcessError(command, 2, stderr)

    fake(monkeypatch, fail)
    (refused,) = ask([unit()], FAKE)
    assert isinstance(refused, RefusedError)
    assert refused.stderr == shown


def test_a_compiler_that_is_missing_is_told_for_each_unit(cache: Path) -> None:
    nowhere = Toolchain(Path("/absent/nvcc"), "13.2.51", ("sm90",))
    results = ask([unit(), unit(arch="sm75")], nowhere)
    assert [str(error) for error in results] == [f"/absent/nvcc is missing\n  {to_install()}"] * 2
    assert isinstance(results[0], MissingToolError)


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(compiling, "run", forbidden)
    (error,) = ask([unit()], FAKE)
    assert isinstance(error, InputError)
    assert str(error) == (
        f"cannot write {tmp_path}/file/units: Not a directory\n"
        "  Set POLICYGEN_CACHE to a folder that can be written."
    )


def test_a_full_disk_is_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(command: list[str]) -> None:
        raise OSError(28, "No space left on device")

    fake(monkeypatch, fill)
    (error,) = ask([unit()], FAKE)
    assert str(error) == (
        f"cannot write {cache}: No space left on device\n"
        "  Set POLICYGEN_CACHE to a folder that can be written."
    )


def test_nothing_asked_is_nothing_compiled(cache: Path) -> None:
    assert ask([], FAKE) == []
    assert not cache.exists()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, ValueError])
def test_an_interrupt_leaves_no_thread_and_starts_no_more(
    cache: Path, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    commands: list[list[str]] = []
    go = threading.Event()

    def behave(command: list[str]) -> None:
        commands.append(command)
        if Path(command[-1]).read_text().split()[0] != "0":
            assert go.wait(20)

    fake(monkeypatch, behave)
    before = set(threading.enumerate())

    def stop(step: HowFar) -> None:
        if not step.done:
            return
        threading.Timer(0.1, go.set).start()
        raise interrupt

    units = [unit(text=str(number)) for number in range(200)]
    with pytest.raises(interrupt):
        ask(units, FAKE, progress=stop)
    assert len(commands) <= 2 * (os.cpu_count() or 1) + 2
    left = [thread for thread in set(threading.enumerate()) - before if thread.is_alive()]
    assert [thread.name for thread in left if "ThreadPool" in thread.name] == []
    assert not list(cache.rglob("*.ii"))


def test_an_error_that_is_no_refusal_is_not_hidden(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(command: list[str]) -> None:
        raise ZeroDivisionError

    fake(monkeypatch, break_down)
    with pytest.raises(ZeroDivisionError):
        ask([unit()], FAKE)


def test_a_refusal_is_an_expected_failure() -> None:
    assert issubclass(RefusedError, PolicygenError)
    assert shutil.which("sh"), "commands are shown for a shell"
