"""The programs of `docs/findings.md` compile, and its lines are CUB's; to fail takes a GPU."""

import re
import subprocess
from pathlib import Path

import pytest

from policygen.proof.toolchain import find_toolchain
from tests.probing import root
from tests.tiers import slow

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs/examples/failing"
OPTIONS = [
    (program, options.replace("'", "").split())
    for program, options in re.findall(
        r"^\| `(\w+)` \|(?: `(.+?)`)? \|", (EXAMPLES / "README.md").read_text("utf-8"), re.M
    )
]
# One of CUB's own and one of a policy for each.
COMPILED = {(program, "ITEMS" in str(options)): options for program, options in OPTIONS}
DISPATCH = "cub/device/dispatch"
# Where the page points to in CUB 3.6.0, and what is there.
PLACES = {
    (f"{DISPATCH}/dispatch_reduce_by_key.cuh", 221): "vsmem_helper_default_fallback_policy_t<",
    (f"{DISPATCH}/dispatch_reduce_by_key.cuh", 719): "determine_threads_items_vsmem<",
    (f"{DISPATCH}/dispatch_rle_encode.cuh", 116): "vsmem_helper_default_fallback_policy_t<",
    (f"{DISPATCH}/dispatch_streaming_reduce_by_key.cuh", 95): "policy.lookback.threads_per_block",
    (f"{DISPATCH}/dispatch_streaming_reduce_by_key.cuh", 112): "max_num_tiles",
    (f"{DISPATCH}/dispatch_streaming_reduce_by_key.cuh", 213): "vsmem_t{nullptr}",
    (f"{DISPATCH}/dispatch_streaming_reduce_by_key.cuh", 234): "vsmem_t{nullptr}",
    (f"{DISPATCH}/tuning/tuning_rle_encode.cuh", 559): "__make_default_policy",
    (f"{DISPATCH}/tuning/tuning_rle_encode.cuh", 795): "compute_capability{10, 7}",
    (f"{DISPATCH}/tuning/tuning_rle_encode.cuh", 802): "512,",
    (f"{DISPATCH}/tuning/tuning_rle_encode.cuh", 803): "24,",
    (f"{DISPATCH}/tuning/tuning_reduce.cuh", 637): "items_per_thread   = 16",
    ("cub/util_arch.cuh", 116): "max_smem_per_block = 48 * 1024",
    ("cub/util_vsmem.cuh", 164): "use_fallback_agent",
    ("cub/util_vsmem.cuh", 222): "policy_wrapper_t<DefaultPolicyT, 64, 1>",
    ("cub/agent/agent_reduce.cuh", 203): "AgentReducePolicy::VECTOR_LOAD_LENGTH>::Type",
    ("cub/agent/agent_reduce.cuh", 216): "vec_size",
    ("cub/agent/agent_reduce.cuh", 222): "ITEMS_PER_THREAD % vec_size == 0",
    ("cub/agent/agent_reduce.cuh", 264): "is_sufficiently_aligned<alignof(VectorT)>",
    ("cub/agent/agent_reduce.cuh", 308): "lane_id * vec_size",
}


@pytest.mark.trees
def test_the_places_are_those_of_cub():
    found = {
        (name, line): (root("3.6.0") / name).read_text("utf-8").splitlines()[line - 1]
        for name, line in PLACES
    }
    assert [place for place, text in PLACES.items() if text not in found[place]] == []


def test_the_page_of_programs_names_both():
    assert {program for program, _ in OPTIONS} == {path.stem for path in EXAMPLES.glob("*.cu")}
    assert [options for _, options in OPTIONS].count([]) == 2


@slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("program", "options"), [(program, options) for (program, _), options in COMPILED.items()]
)
def test_a_program_compiles_with_its_options(program, options, tmp_path):
    source, made = EXAMPLES / f"{program}.cu", tmp_path / "made.cubin"
    command = [find_toolchain().nvcc, "-std=c++17", "-arch=sm_90", "-cubin", "-Werror=all-warnings"]
    command += [f"-I{root('3.6.0')}", *options, "-o", made, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
