from types import SimpleNamespace

import pytest

from policygen.errors import InputError, MissingToolError
from policygen.proof import kernel_comparison
from policygen.proof.kernel_comparison import (
    _keep_scope_kernels,
    demangled,
    function,
    lasting,
    short,
)
from tests.proof.sass.dumps import CPP, EMPTY, SUM_INT

HUB = "cub::CUB_300001_SM_900::detail::scan::policy_hub<int, int, cuda::std::__4::plus<void> >"
SCAN = (
    f"void cub::CUB_300001_SM_900::detail::scan::DeviceScanKernel<{HUB}::Policy1000, int*, int*,"
    " cub::CUB_300001_SM_900::ScanTileState<int, true>, (bool)0>(int*, int*)"
)


def test_names_are_demangled_in_one_go():
    assert demangled(CPP) == CPP
    assert demangled([]) == {}
    assert demangled(["plain"]) == {"plain": "plain"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (CPP[EMPTY], "lib::EmptyKernel()"),
        (
            CPP[SUM_INT],
            "void lib::SumKernel<lib::policy_hub<int>::Policy, int>(int const*, int*, int)",
        ),
        ("cub::_V_300200_SM_800::kernel<int>()", "cub::kernel<int>()"),
        ("thrust::THRUST_300001_SM_900_NS::kernel()", "thrust::kernel()"),
        ("cub::CUB_300001_SM_750_900::kernel()", "cub::kernel()"),
        ("cuda::std::__4::plus<void>", "cuda::std::plus<void>"),
        ("a::Policy1000x<a::Policy>", "a::Policy1000x<a::Policy>"),
    ],
)
def test_releases_and_numbers_of_policies_do_not_last(name, expected):
    assert lasting(name) == expected


def test_a_function_is_known_by_its_last_name():
    assert function(lasting(SCAN)) == "DeviceScanKernel"
    assert function("lib::EmptyKernel()") == "EmptyKernel"
    assert function("_Z1k") == "_Z1k"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (CPP[EMPTY], "EmptyKernel"),
        (CPP[SUM_INT], "SumKernel<policy_hub<int>::Policy900, int>"),
        (
            SCAN,
            "DeviceScanKernel<policy_hub<int, int, plus<void>>::Policy1000, int*, int*, …>",
        ),
        (
            f"k<a::hub<{', '.join(['long_name'] * 20)}>::Policy900, int>()",
            f"k<hub<{'long_name, ' * 7}…>::Policy900, …>",
        ),
        (
            "void cub::_V_300600_SM_900::detail::scan::DeviceScanKernel<cub::_V_300600_SM_900::"
            "detail::scan::policy_selector_from_types<int const*, int*, int, unsigned int, "
            "cuda::std::__4::plus<void>, false>, int const*, int*>(int const*, int*)",
            "DeviceScanKernel<policy_selector_from_types<int const*, int*, int, unsigned int, "
            "plus<void>, …>, …>",
        ),
        (f"k<a::hub<{'long_name' * 20}, int>::Policy900, int>()", "k<hub<…>::Policy900, …>"),
        (f"k<a::{'long_name' * 20}, int>()", f"k<{'long_name' * 20}<…>, …>"),
    ],
)
def test_people_read_algorithm_types_and_policy(name, expected):
    assert short(name) == expected


def test_a_filter_that_loses_names_does_not_work(monkeypatch):
    monkeypatch.setattr(kernel_comparison, "run", lambda *_, **__: "one\n")
    with pytest.raises(MissingToolError, match=r"a working c\+\+filt is missing"):
        demangled(["a", "b"])


def test_kernels_of_other_scopes_are_not_compared():
    spot = ("cub.bench.scan.exclusive.sum", (("T", "F32"),)), "sm90"
    units = [(spot, SimpleNamespace(scope="detail::reduce"))]
    ((refused,),) = [_keep_scope_kernels(units, [(SimpleNamespace(name=SUM_INT),)])]
    assert isinstance(refused, InputError)
    assert str(refused) == (
        "cub.bench.scan.exclusive.sum T=F32 on sm90: none of 1 kernels mentions detail::reduce"
    )
