import pytest

from tests.emit.made import make
from tests.planning.wanted import GPUS, benchmark, scored

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]


def test_what_a_database_says_stays_in_its_comment():
    one = benchmark("3.6.0", "reduce.deterministic")
    gpu = f"{GPUS['sm90'].partition(' ')[0]}\n#error \\"
    workload = {"T": "F32", "OffsetT": "I32"}
    result = scored(one, workload, "ipt_9.tpb_160", "3.6.0", gpu)
    hostile = result.model_copy(
        update={"databases": ("a\\\n#error b.db\\",), "ctk": "13\r\n#error"}
    )
    made = make("3.6.0", [hostile])
    head = made.text.partition("#pragma once")[0].rstrip().splitlines()
    assert all(row.startswith("//") and not row.endswith("\\") for row in head)
    assert "// Measured on H200 #error \\, CUDA 13 #error, CCCL v3.6.0: a\\ #error b.db" in head


def test_selectors_of_one_policy_are_not_shown_in_one_environment():
    names = ("reduce.deterministic", "reduce.nondeterministic")
    workload = {"T": "F32", "OffsetT": "I32"}
    label = {
        "reduce.deterministic": "ipt_9.tpb_160",
        "reduce.nondeterministic": "ipt_9.tpb_160.ipv_1",
    }
    results = [
        scored(benchmark("3.6.0", name), workload, label[name], "3.6.0", GPUS["sm90"])
        for name in names
    ]
    made = make("3.6.0", results)
    assert [one.name for one in made.selectors] == [
        "deterministic_reduce",
        "nondeterministic_reduce",
    ]
    assert "//   cuda::execution::tune(" not in made.text
