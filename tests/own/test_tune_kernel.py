"""`policygen tune kernel.toml` with a simulated GPU: a header of values, with its proof."""

import subprocess
from types import SimpleNamespace

import pytest

from policygen.app.tune import new_header
from policygen.cli.main import main
from policygen.headers.benchmark_sources import read_kernel
from policygen.model.emitted import TunedProgram
from policygen.proof.toolchain import find_toolchain
from tests.app.searched import pretend
from tests.gpu.simulated import Plan
from tests.own.kernels import write_saxpy, write_small
from tests.real_trees import tree

pytestmark = pytest.mark.trees
BEST = "strategy_1.threads_512.items_2"
FEWER = (('"powers 128:1024"', "[256, 512]"), ("[1, 2, 4, 8]", "[1, 2]"))
LEAST = (('"powers 128:1024"', "[256]"), ("[1, 2, 4, 8]", "[1]"))
HEADER = "saxpy_tuning.cuh"
PROGRAM = """\
#include "saxpy_tuning.cuh"

struct values
{
  int strategy, threads, items;
};

values chosen(int version, long long elements)
{
  return saxpy_tuning::with_policy(version, elements, [](auto policy) {
    return values{policy.strategy, policy.threads, policy.items};
  });
}

bool is(values one, int strategy, int threads, int items)
{
  return one.strategy == strategy && one.threads == threads && one.items == items;
}

int main()
{
  using namespace saxpy_tuning;
  const bool large = is(chosen(900, 10'000'000), stride, 512, 2);
  const bool newer = is(chosen(1000, 1ll << 40), stride, 512, 2);
  const bool other = is(chosen(800, 10'000'000), each_its_own, 256, 1);
  const bool small = is(chosen(900, 1'000'000), stride, 512, 2) && size_class(1'000'001) == 1;
  return large && newer && other && small ? 0 : 1;
}
"""


@pytest.fixture
def tune(tmp_path, monkeypatch, capsys):
    """Runs the command on the example; what it says, in its parts."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, changed=(), worth=None, write=write_saxpy, out=HEADER):
        path = write(tmp_path, *(changed or FEWER))
        ratios = {BEST: 1.5} if worth is None else worth
        pretend(tmp_path, monkeypatch, Plan(str(tmp_path), ratios=ratios))
        where = ("--cub", str(tree("3.6.0")), "--jobs", "1", "--budget", "3m")
        status = main(["tune", str(path), *where, "-o", out, *arguments])
        captured = capsys.readouterr()
        return SimpleNamespace(status=status, out=captured.out, err=captured.err)

    return run


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_header_has_what_is_faster_and_a_program_asks_it(tune, tmp_path):
    told = tune("--json", "-q")
    assert told.status == 0, told.err
    document = TunedProgram.model_validate_json(told.out.splitlines()[-1])
    assert [one.benchmark for one in document.searched.workloads] == [
        "own.saxpy.small", "own.saxpy.large"
    ]  # fmt: skip
    made = document.kernel
    assert (made.is_new, made.arch, made.changed) == (True, "sm90", True)
    assert {(one.decision, one.variant) for one in made.actions} == {("add", BEST)}
    assert made.effect.changed
    text = (tmp_path / HEADER).read_text()
    assert made.text == text
    assert (
        "enum strategies\n{\n  each_its_own, stride, each_its_own_managed, stride_managed\n" in text
    )
    assert "struct sm90_tuning<1>" in text
    program = tmp_path / "program.cu"
    program.write_text(PROGRAM)
    nvcc = find_toolchain().nvcc
    options = [
        "-std=c++17",
        "-arch=sm_90",
        "-Werror=all-warnings",
        "-Xcompiler=-Wall,-Wextra,-Werror",
    ]
    command = [nvcc, *options, f"-I{tree('3.6.0')}", "-o", tmp_path / "program", program]
    compiled = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (compiled.returncode, compiled.stderr) == (0, "")
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 0

    # The same command finds what it has measured, and the header as it is.
    again = tune("-q")
    assert (tmp_path / HEADER).read_text() == text
    assert again.status == 0, again.err
    assert "the header has these values already" in again.out


@pytest.mark.slow
@pytest.mark.nvcc
def test_nothing_faster_is_no_header(tune, tmp_path):
    told = tune("-v", worth={}, changed=LEAST)
    assert told.status == 1, told.err
    assert "no variant beats the kernel's current values" in " ".join(told.out.split())
    assert not (tmp_path / HEADER).exists()


@pytest.mark.slow
@pytest.mark.nvcc
def test_it_tells_what_became_of_each_class_and_what_the_compiler_says(tune):
    told = tune()
    assert told.status == 0, told.err
    out = " ".join(told.out.split())
    assert "proved: " in out
    assert out.endswith(f"written: {HEADER}")
    assert "own.saxpy.small" in out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (version < Since)", "if (version > Since)"),
        ("// end of chain", "// end"),
        ("elements <= 1000000", "elements <= 2000000"),
        ("static constexpr int items = ", "static constexpr long items = "),
        ("each_its_own, stride,", "stride, each_its_own,"),
    ],
)
def test_a_header_that_was_edited_is_refused_before_anything_is_measured(tune, tmp_path, old, new):
    text = new_header(read_kernel(write_saxpy(tmp_path, *FEWER)), "sm90")
    assert old in text
    (tmp_path / HEADER).write_text(text.replace(old, new))
    told = tune("-q")
    assert told.status == 2
    assert f"{HEADER} is not a policy header of saxpy as saxpy.toml declares it" in told.err
    assert "Choose another file with -o." in told.err
    assert not (tmp_path / "saxpy_tuning.db").exists()


@pytest.mark.parametrize("text", ["// Made by policygen 0.9\n", "// Made by policygen \xff\xfe\0"])
def test_a_header_of_something_else_is_refused_too(tune, tmp_path, text):
    (tmp_path / HEADER).write_bytes(text.encode("latin-1"))
    told = tune("-q")
    assert told.status == 2
    assert "is not a policy header of saxpy" in told.err


def test_what_others_wrote_stays(tune, tmp_path):
    (tmp_path / HEADER).write_text("int mine;\n")
    told = tune("-q")
    assert told.status == 2
    assert "exists already and was not written by policygen" in told.err


@pytest.mark.slow
@pytest.mark.nvcc
def test_other_architectures_keep_what_they_have(tune, tmp_path):
    small = "ipt_16.tpb_128"
    changed = (("tpb * ipt <= 1024", "tpb * ipt <= 4096"),)
    maker = read_kernel(write_small(tmp_path, *changed))
    other = new_header(maker, "sm80")
    (tmp_path / "mine.cuh").write_text(other)
    told = tune("-q", write=write_small, out="mine.cuh", changed=changed, worth={small: 1.4})
    assert told.status == 0, told.err
    text = (tmp_path / "mine.cuh").read_text()
    assert "Policy800" in text
    assert "struct sm80_tuning;" in text
    assert "struct sm90_tuning<0>" in text
    assert "Policy900" in text
