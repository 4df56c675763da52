"""Where hipcc is looked for, and what is taken from it; the real one, and ones that lie."""

import shlex

import pytest

from policygen.errors import InputError, MissingToolError
from policygen.rocprim import hipcc as module
from policygen.rocprim.hipcc import compile_trial, find_hipcc, find_target, to_install

VERSION = "HIP version: 6.1.0-0\\nDebian clang version 17.0.6 (22)"
OWN = "--rocm-path=/opt/rocm -O3"
GIVEN = "-E --cuda-device-only --offload-arch=gfx90a"
FILES = '-o "unit.ii" -x hip unit.hip'


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def clang(folder, text="exit 0"):
    return script(folder / "clang++", text)


def hipcc(path, command=None, version=VERSION, clang="/opt/rocm/clang++"):
    """One that starts a clang, as it says where it is told to."""
    told = f"hipcc-cmd: {clang}  {OWN} {GIVEN} {FILES}" if command is None else command
    return script(
        path,
        f'if [ "$1" = --version ]; then printf "{version}\\n"; exit; fi\n'
        f"printf '%s\\n' {shlex.quote(told)}",
    )


@pytest.fixture(autouse=True)
def no_other(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "INSTALLED", tmp_path / "opt/rocm/bin/hipcc")


def at(tmp_path, **variables):
    return {"PATH": str(tmp_path / "bin"), **{k: str(v) for k, v in variables.items()}}


def test_it_is_looked_for_in_rocm_on_path_and_where_amd_puts_it(tmp_path):
    installed = hipcc(tmp_path / "opt/rocm/bin/hipcc")
    assert find_hipcc(environment=at(tmp_path)).path == installed
    on_path = hipcc(tmp_path / "bin/hipcc")
    assert find_hipcc(environment=at(tmp_path)).path == on_path
    headers = tmp_path / "headers"
    assert find_hipcc(environment=at(tmp_path, ROCM_PATH=headers)).path == on_path
    named = hipcc(tmp_path / "rocm/bin/hipcc")
    environment = at(tmp_path, ROCM_PATH=tmp_path / "rocm")
    assert find_hipcc(environment=environment).path == named
    given = hipcc(tmp_path / "given/hipcc")
    found = find_hipcc(given, environment)
    assert (found.path, found.clang) == (given, "/opt/rocm/clang++")
    assert found.options == ("--rocm-path=/opt/rocm", "-O3")
    assert found.name == "hipcc 6.1.0 (clang 17.0.6)"


def test_without_one_it_is_said_what_to_install(tmp_path):
    with pytest.raises(MissingToolError) as caught:
        find_hipcc(environment=at(tmp_path))
    assert str(caught.value) == f"hipcc is missing\n  {to_install()}"
    assert "apt-get install hipcc" in to_install()
    with pytest.raises(MissingToolError, match=r"absent \(from --hipcc\) is missing"):
        find_hipcc(tmp_path / "absent")


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ({"version": "nothing"}, "does not report its release"),
        ({"version": "HIP version: 6.1.0"}, "does not report its release"),
        ({"command": "it works"}, "does not report what it runs"),
        ({"command": f"hipcc-cmd: clang++ {GIVEN} {FILES}"}, "does not report what it runs"),
        ({"command": "hipcc-cmd: /usr/bin/clang++ 'open"}, "does not report what it runs"),
        ({"command": "hipcc-cmd: /usr/bin/clang++ -O3"}, "does not report what it runs"),
    ],
)
def test_one_that_does_not_say_what_it_is_is_not_taken(tmp_path, lie, message):
    path = hipcc(tmp_path / "hipcc", **lie)
    with pytest.raises(MissingToolError) as caught:
        find_hipcc(path)
    assert f"a working hipcc ({path} {message}) is missing" in str(caught.value)


LOG = 'printf \'%s\' "{}" > "$CC_PRINT_OPTIONS_FILE"'


def logging(*files):
    told = " ".join(f'\\"-mlink-builtin-bitcode\\" \\"{file}\\"' for file in files)
    return LOG.format(told)


def test_what_is_linked_into_all_code_names_it(tmp_path):
    code = tmp_path / "ocml.bc"
    code.write_text("one")
    found = find_hipcc(hipcc(tmp_path / "hipcc", clang=clang(tmp_path, logging(code, code))))
    before = find_target(found, "gfx90a")
    assert before.identity == compile_trial(found)
    assert not before.refusal
    code.write_text("other")
    find_target.cache_clear()
    assert find_target(found, "gfx90a").identity != before.identity


@pytest.mark.parametrize("lost", [(), ("/absent/ocml.bc",)])
def test_one_that_does_not_say_what_it_links_compiles_for_nothing(tmp_path, lost):
    text = logging(*lost) if lost else "exit 0"
    found = find_hipcc(hipcc(tmp_path / "hipcc", clang=clang(tmp_path, text)))
    assert find_target(found, "gfx90a").refusal.endswith(
        "it does not report the code that it links"
    )
    with pytest.raises(InputError, match="the code that it links"):
        compile_trial(found)


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("clang: error: invalid target ID; write another", "invalid target ID"),
        ("it is broken", "it is broken"),
        ("", "it prints nothing"),
    ],
)
def test_why_an_architecture_is_not_compiled_for_is_told(tmp_path, words, refusal):
    text = f"echo '{words}' >&2; exit 1"
    found = find_hipcc(hipcc(tmp_path / "hipcc", clang=clang(tmp_path, text)))
    target = find_target(found, "gfx90a")
    assert (target.identity, target.refusal) == ("", refusal)


@pytest.mark.hipcc
def test_the_real_one_compiles_for_what_it_knows_and_says_why_not_for_others(monkeypatch):
    monkeypatch.delenv("ROCM_PATH", raising=False)
    found = find_hipcc()
    known, unknown = find_target(found, "gfx90a"), find_target(found, "gfx999")
    assert (bool(known.identity), known.refusal) == (True, "")
    assert unknown.identity == ""
    assert "gfx999" in unknown.refusal
    assert known.identity != find_target(found, "gfx1030").identity
    # What it was asked with is none of its options.
    assert not {"-E", "-o", "unit.ii", "unit.hip"} & set(found.options)
