"""Workloads of real trees, opened as a command opens them."""

from policygen.app.filters import Filter
from policygen.app.measuring import chosen_workloads, open_workloads
from policygen.app.session import open_session
from policygen.bindings.recorded import benchmark_of
from policygen.measure.distinct import Classifier
from policygen.measure.public import ask_public
from policygen.measure.space import space_of
from policygen.model.workload import axis_name
from policygen.proof.toolchain import find_toolchain
from tests.trees import tree


def session(version):
    return open_session(str(tree(version)))


def opened(version, regex, axes=(), arch="sm90", **more):
    """What becomes of the workloads that are meant, by workload."""
    known = session(version)
    where = Filter(regex=regex, axes=axes)
    return open_workloads(known, chosen_workloads(known, where), arch, **more)


def policies(name, arch="sm90", **axes):
    """The classifier of one workload of 3.6.0; its binding need not say how it runs."""
    cub = session("3.6.0").cub
    benchmark = benchmark_of(name, cub.bindings)
    told = ask_public(cub, [benchmark], arch, find_toolchain())
    wanted = [
        one
        for point, one in told.items()
        if axes.items() <= {axis_name(axis): value for axis, value in point[1]}.items()
    ]
    return Classifier(space_of(benchmark), wanted[0])
