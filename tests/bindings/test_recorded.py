import pytest

from policygen.bindings.recorded import recorded, translate_workload, version_of
from policygen.errors import InputError
from policygen.model.trees import BoundVersion

SUM = "cub.bench.reduce.sum"
SELECT = "cub.bench.select.if"
EXTREMA = "cub.bench.reduce.arg_extrema"


@pytest.mark.parametrize(
    ("cccl", "version"),
    [
        ("v3.0.3", "3.0.3"),
        ("3.2.0", "3.2.0"),
        ("v3.6.0.dev-204-g571f2fc3bc", "3.6.0"),
        ("v2.8.0-rc1", "2.8.0"),
    ],
)
def test_a_cccl_version_is_understood(cccl, version):
    assert version_of(cccl) == version


def translated(name, workload, cccl, version):
    measured = recorded(name, workload, BoundVersion(version_of(cccl)))
    return translate_workload(measured, BoundVersion(version))


def test_axes_have_their_names_of_today():
    found = recorded(
        SELECT,
        {"T{ct}": "I8", "OffsetT{ct}": "I64", "MayAlias{ct}": "true"},
        BoundVersion("2.8.0"),
    )
    assert found.workload == {"T": "I8", "OffsetT": "I64", "InPlace": "true"}


@pytest.mark.parametrize(
    ("name", "workload", "cccl", "version", "expected"),
    [
        (SUM, {"T": "C64", "OffsetT": "I32"}, "v3.0.3", "3.2.0", {"T": "C32", "OffsetT": "I32"}),
        (SUM, {"T": "C32", "OffsetT": "I32"}, "v3.2.0", "3.0.1", {"T": "C64", "OffsetT": "I32"}),
        (SUM, {"T": "I8", "OffsetT": "I32"}, "v3.0.3", "3.6.0", {"T": "I8", "OffsetT": "I32"}),
        (
            SELECT,
            {"T": "F32", "OffsetT": "I64", "MayAlias": "false"},
            "v2.8.0",
            "3.6.0",
            {"T": "F32", "InPlace": "false"},
        ),
        (
            EXTREMA,
            {"T": "I8", "Operation": "ArgMax"},
            "v3.2.0",
            "3.5.0",
            {"T": "I8", "Operation": "arg_max"},
        ),
        (
            EXTREMA,
            {"T": "I8", "Operation": "arg_max"},
            "v3.5.0",
            "3.2.0",
            {"T": "I8", "Operation": "ArgMax"},
        ),
        (
            EXTREMA,
            {"T": "I8", "Operation": "ArgMin"},
            "v3.0.3",
            "3.2.0",
            {"T": "I8", "Operation": "ArgMin"},
        ),
    ],
)
def test_a_workload_is_what_another_version_calls_it(name, workload, cccl, version, expected):
    assert translated(name, workload, cccl, version) == expected


@pytest.mark.parametrize(
    ("name", "workload", "cccl", "version", "message"),
    [
        (SUM, {}, "main", "3.0.1", "'main' is not a CCCL version\n  Write it like v3.0.3."),
        ("cub.bench.other", {}, "v3.0.3", "3.0.1", "cub.bench.other is not bound for CUB 3.0.3"),
        (SUM, {}, "rocprim@2.13.1", "3.0.1", f"{SUM} is not bound for rocPRIM 2.13.1"),
        (
            SUM,
            {"KeyT{ct}": "I8"},
            "v3.0.3",
            "3.0.1",
            "cub.bench.reduce.sum of CUB 3.0.3 has no axis KeyT\n"
            "  Its compile-time axes: T, OffsetT",
        ),
        (
            SUM,
            {"T": "F16", "OffsetT": "I32"},
            "v3.6.0",
            "3.2.0",
            "T of cub.bench.reduce.sum has no value F16 in CUB 3.2.0\n"
            "  It has: I8, I16, I32, I64, I128, F32, F64, C32",
        ),
        (
            "cub.bench.run_length_encode.encode",
            {"T": "I8", "OffsetT": "I32", "RunLengthT": "I32"},
            "v3.2.0",
            "3.0.1",
            "cub.bench.run_length_encode.encode of CUB 3.0.1 has no axis RunLengthT",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(name, workload, cccl, version, message):
    with pytest.raises(InputError) as raised:
        translated(name, workload, cccl, version)
    assert str(raised.value) == message
