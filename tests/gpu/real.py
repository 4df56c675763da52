"""Workloads of real trees, opened as a command opens them."""

from policygen.app.filters import Filter
from policygen.app.measured_workloads import chosen_workloads, open_workloads
from policygen.app.session import open_session
from policygen.bindings.load import site_of
from policygen.bindings.recorded import benchmark_of
from policygen.gpu.opened import EntryWorkload, ask_public
from policygen.gpu.space import Classifier, space_of
from policygen.model.plans import Options
from policygen.model.workload import axis_name
from policygen.planning.plan import Planner
from policygen.proof.oracle import open_compiler
from policygen.proof.probe import workloads
from policygen.proof.toolchain import find_toolchain
from policygen.results.together import Together
from tests.real_trees import tree


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


def header_workload(version, name, arch="sm90", **axes):
    """What writes the variants of one workload as headers; its binding need not say how it runs."""
    known = session(version)
    benchmark = benchmark_of(name, known.cub.bindings)
    _, site = site_of(benchmark, known.cub.bindings, known.cub.dialect)
    compiler = open_compiler(known.cub, (site.header,))
    planner = Planner(
        compiler.sources, Options(arch=arch), compiler, lambda _: Together((), "alone")
    )
    points = [one.point for one in workloads(benchmark, known.cub.bindings)]
    point = next(one for one in points if axes.items() <= dict(one[1]).items())
    spot = planner.dialect.place(benchmark, compiler.tell([point], arch)[point], point)
    bindings = known.cub.bindings
    return EntryWorkload(spot, benchmark, point, arch, bindings, planner, compiler.selects)
