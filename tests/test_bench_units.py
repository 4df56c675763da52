"""`make bench` gives nvcc what policygen gives it."""

import pytest

from benchmarks.sass import ARCH, TYPES, units
from policygen.model.arch import arch_number
from tests.real_trees import tree


@pytest.mark.trees
@pytest.mark.nvcc
def test_nvcc_alone_compiles_the_same_units_with_the_same_options():
    found = units(tree("3.0.1"))
    assert len(found) == len(TYPES)
    for text, options in found:
        assert "device_scan.cuh" in text
        assert {f"-arch=sm_{arch_number(ARCH)}", f"-I{tree('3.0.1')}"} <= {*options}
