"""Documents of `verify-performance` for tests, made up."""

import json

import jsonschema

from policygen.model.measured import VariantFailure
from policygen.model.searches import QUANTILES
from policygen.model.trees import Cub
from policygen.model.verdicts import (
    PerformanceNoise,
    RuntimePerformance,
    VerifyPerformance,
    WorkloadPerformance,
)

CUB = Cub(root="/tree", version="3.0.1", dialect="specializations", found="--cub")
SCAN = "cub.bench.scan.exclusive.sum"


def runtime(ratio, verdict, elements="16", **fields):
    """A runtime workload; its interval is a hundredth to each side."""
    given = {
        "subbench": "base",
        "point": {"Elements{io}[pow2]": elements},
        "weight": 0.5,
        "before_seconds": ratio * 1e-5,
        "after_seconds": 1e-5,
        "ratio": ratio,
        "low": ratio * 0.99,
        "high": ratio * 1.01,
        "noise": 0.003,
        "verdict": verdict,
        "processes": 5,
        "quantiles": tuple(ratio * (1 + (at - 0.5) / 50) for at in QUANTILES),
    }
    return RuntimePerformance(**{**given, **fields})


def workload(name, ratio, verdict, *rows, **fields):
    """A workload of scan on sm90."""
    given = {"benchmark": SCAN, "workload": {"T": name}, "arch": "sm90", "verdict": verdict}
    if ratio is not None:
        given |= {"ratio": ratio, "low": ratio * 0.99, "high": ratio * 1.01, "noise": 0.002}
    return WorkloadPerformance(**{**given, "runtime": rows, **fields})


def faster():
    rows = runtime(1.2, "faster"), runtime(0.95, "slower", "20"), runtime(1.002, "equal", "24")
    claim = {"claimed": 1.08, "least": 1.05, "holds": True}
    return workload("I32", 1.084, "faster", *rows, **claim)


def slower():
    claim = {"claimed": 1.02, "least": 1.0, "holds": False}
    return workload("I8", 0.93, "slower", runtime(0.93, "slower", weight=1), **claim)


def undecided():
    wide = runtime(1.01, "undecided", low=0.97, high=1.05)
    return workload("F32", 1.01, "undecided", wide, low=0.97, high=1.05)


def same(name="U64"):
    return workload(name, None, "same-code")


def wrong():
    failed = VariantFailure(kind="wrong", reason="the sum is another one")
    return workload("F64", None, "undecided", failed=failed)


def unmeasured():
    return workload("I128", None, "undecided", problem="the budget ended before it was measured")


def performance(*workloads, **fields):
    """One faster, one slower, one undecided, one with the same code, unless others are given."""
    given = {
        "cub": CUB,
        "before": "HEAD",
        "after": "CUB 3.0.1",
        "arch": "sm90",
        "gpu": "H200 (6144, 132, eccon)",
        "driver": "570.1",
        "toolchain": "nvcc 13.2",
        "confidence": 0.99,
        "noise": PerformanceNoise(least=0.002, median=0.003, most=0.004, processes=5),
        "verdict": "slower",
        "workloads": workloads or (faster(), slower(), undecided(), same()),
    }
    return VerifyPerformance(**{**given, **fields})


def told(capsys):
    """What the command printed, which has its schema."""
    out = capsys.readouterr().out
    jsonschema.validate(json.loads(out), VerifyPerformance.model_json_schema(mode="serialization"))
    return VerifyPerformance.model_validate_json(out)
