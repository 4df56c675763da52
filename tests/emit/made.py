"""Headers made of results that are made up, for tests: a variant for each workload."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from policygen import trees
from policygen.app.emit import Emitter, judge, questions
from policygen.bindings.load import axis_values
from policygen.headers.selectors.functions import find_aggregates
from policygen.headers.user.header import HeaderTarget, render, selector_of
from policygen.headers.user.policies import TunedSelector
from policygen.model.emitted import EmitSelector
from policygen.model.trees import BoundVersion
from policygen.proof.ask import ask_policies
from policygen.proof.probe import QueriedTree
from policygen.proof.toolchain import find_toolchain
from policygen.proof.units import overlay
from policygen.results.together import Together
from tests.planning.wanted import GPUS, every_benchmark, points
from tests.planning.wanted import scored as result
from tests.probing import TUNINGS, root

FILE = "my_tunings.cuh"
ARCHS = ("sm89", "sm90", "sm100", "sm103")
UNTIL = {"sm90": "sm100", "sm100": "sm103"}


def same_for_all(scored):
    """The variant that was chosen for the first is good for all."""
    found = [v for one in scored for v in one.variants if v.variant == one.choice.variant]
    return Together(tuple(found[0] for _ in scored), "the same for all")


VALUES = {
    "ipt": 11, "tpb": 160, "ipv": 1, "trp": 1, "ld": 2, "ns": 300, "dcid": 1, "l2w": 500,
    "ltpb": 192, "lipt": 12, "mtpw": 16, "stpw": 2, "mipt": 6, "sipt": 3,
    "ipmw": 5, "ipsw": 3, "tpmw": 4, "tpsw": 2, "bits": 5, "pt": 300, "ra": 1,
    "bif": 4, "alg": 0, "unrl": 2, "pref": 2, "vsp2": 2, "spb": 512,
    "bpt": 3, "tlevbpt": 4, "lbbpt": 8, "wlt": 64, "blt": 2048, "ppb": 1,
    "wrps": 4, "lbi": 3, "lbs": 1, "bis": 1, "dmrt": 64,
}  # fmt: skip
"""Values that compile, and that CUB selects for nothing; others are the first of their range."""


def working(benchmark):
    """A variant that compiles; in ranges of exponents, threads are 64."""
    parts = []
    for name, space in benchmark.parameters.items():
        start, end, step = map(int, space.split(":"))
        value = VALUES.get(name, start)
        if not start <= value <= end or (value - start) % step:
            value = 6 if space == "6:10:1" else 384 if name == "tpb" else start
        parts.append(f"{name}_{value}")
    return ".".join(parts)


def every_result(version, arch="sm90", wanted=lambda _name: True, most=3):
    """A variant for the first workloads of every benchmark."""
    return [
        result(benchmark, workload, working(benchmark), version, GPUS[arch])
        for writable in (True, False)
        for benchmark in every_benchmark(version, writable=writable)
        if wanted(benchmark.name)
        for workload in points(fewer(benchmark, version), version)[:most]
    ]


@dataclass(frozen=True)
class Made:
    """A header, and what it was made of."""

    emitter: Emitter
    tuned: list[TunedSelector]
    selectors: tuple[EmitSelector, ...]
    target: HeaderTarget
    text: str

    @property
    def actions(self):
        return [a for one in self.tuned for part in one.parts for a in part.actions]


@cache
def opened(version):
    return trees.open_tree(root(version))


@cache
def structs(version):
    return find_aggregates(
        {p.name: p.read_bytes() for p in (root(version) / TUNINGS).glob("*.cuh")}
    )


def fewer(benchmark, version):
    """A benchmark with two or three values of each axis; the tests of the command ask for all."""
    known = {axis: axis_values(benchmark, axis, BoundVersion(version)) for axis in benchmark.axes}
    axes = {
        a: tuple(v for i, v in enumerate(found) if i < 2 or v == "F32")
        for a, found in known.items()
    }
    return benchmark.model_copy(update={"axes": axes})


def ask(version, std=17, first=()):
    """The compiler; a command asks for all architectures, which takes longer."""

    def answer(wanted):
        wanted = [replace(one, benchmark=fewer(one.benchmark, version)) for one in wanted]
        found = QueriedTree(BoundVersion(version), (*first, *opened(version).include_folders), {})
        return ask_policies(wanted, found, find_toolchain(), archs=ARCHS, std=std)

    return answer


def make(version, scored: Iterable, std=20, arch="sm90", together=same_for_all) -> Made:
    cub = opened(version)
    folder, asked = root(version) / TUNINGS, ask(cub.version)
    emitter = Emitter(cub.bindings, arch, folder, structs(version), asked, together, force=True)
    tuned = [one for one in emitter.emit(list(scored)) if one.written]
    return again(emitter, tuned, version, std, arch)


def again(emitter, tuned, version, std, arch) -> Made:
    """The same results as a header in one of the languages."""
    target = HeaderTarget(opened(version).bindings, arch, UNTIL[arch], std, "my_tunings", FILE)
    selectors = tuple(selector_of(one) for one in tuned)
    text = render(tuned, selectors, target, structs(version))
    return Made(emitter, tuned, selectors, target, text)


def proved(made: Made):
    """What the compiler says of it."""
    folder = overlay(FILE, made.text.encode())
    wanted = questions(made.tuned, "my_tunings", f"{TUNINGS}/{FILE}")
    told = ask(made.target.version.text, made.target.std, (folder,))(wanted)
    return judge(made.tuned, told, made.target.arch)
