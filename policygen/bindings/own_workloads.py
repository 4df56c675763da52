"""A workload of one's own as bindings: a benchmark of CUB's with other types, sizes and inputs."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError
from policygen.model.bindings import (
    AxisType,
    BenchmarkBinding,
    BufferBinding,
    RunBinding,
    SelectorBinding,
)
from policygen.model.own_workload import OwnCallBinding, OwnWorkload, WorkloadInput
from policygen.opening import NotOpenedError, plain_file

PREFIX = "own."
"""Of what benchmarks of workloads of one's own are called."""
OPERATOR = "Op"
"""The axis that the functor is the value of."""
ELEMENTS, ENTROPY = "Elements", "Entropy"
NUMBERS = {"random", "entropy", "sorted"}
"""Ways to fill a buffer that make numbers."""
_BUILT_IN = re.compile(
    r"(?:const |unsigned |signed |long |short )*(?:bool|char|short|int|long|float|double|unsigned"
    r"|signed|__half|__nv_bfloat16|__u?int128_t)\b"
)
_AXIS = re.compile(r"\baxis::(\w+)")
_WORD = re.compile(r"(?<![\w:])[A-Za-z_]\w*(?!\w|::)")
"""A name that no other is in front of."""
_TEXT = re.compile(r'[^"\\\x00-\x1f\x7f-\U0010ffff]+')
"""What stands in a literal as it is."""


@dataclass(frozen=True, slots=True)
class OwnBinding:
    """What joins the bindings of an algorithm."""

    call: OwnCallBinding
    like: BenchmarkBinding
    benchmark: BenchmarkBinding
    run: RunBinding
    types: tuple[AxisType, ...]


def serving(
    selectors: Iterable[SelectorBinding], benchmarks: Iterable[BenchmarkBinding]
) -> tuple[SelectorBinding, ...]:
    """The selectors; what serves a benchmark alone serves those that are like it, too."""
    alike = [(one.name, one.like) for one in benchmarks if one.like is not None]
    return tuple(
        one.model_copy(
            update={
                "benchmarks": (
                    *one.benchmarks,
                    *(name for name, like in alike if like in one.benchmarks),
                )
            }
        )
        for one in selectors
    )


_TAKEN: "list[OwnMaker]" = []


def taken() -> "OwnMaker | None":
    """The workload of one's own that bindings have besides those of their files."""
    return _TAKEN[-1] if _TAKEN else None


def taken_header() -> str | None:
    """The header of that, where it has one."""
    maker = taken()
    return None if maker is None else maker.given.header


@contextmanager
def kept_as_taken(maker: "OwnMaker") -> Iterator[None]:
    """Lets bindings have a workload as long as the block lasts."""
    _TAKEN.append(maker)
    try:
        yield
    finally:
        _TAKEN.pop()


def call_named(
    name: str,
    calls: Sequence[OwnCallBinding],
    later: Sequence[OwnCallBinding] = (),
    version: str = "",
) -> OwnCallBinding:
    """What a workload's file calls an algorithm: `DeviceReduce::Reduce`, or with `cub::`.

    One that only `later` versions of CUB know is refused with the first of them.
    """
    wanted = name.removeprefix("::").removeprefix("cub::")
    for one in calls:
        if one.algorithm == wanted:
            return one
    for one in later:
        if one.algorithm == wanted:
            raise InputError(
                f"CUB {version} can be given no policy for {wanted}",
                f"It can since CUB {one.since}: name a tree of that version, or of a later one.",
            )
    known = sorted({one.algorithm for one in calls})
    near = [f"Is {one} meant? " for one in difflib.get_close_matches(wanted, known, 1)]
    raise InputError(
        f"no workload of one's own can be of {name}",
        "".join(near) + f"There are: {', '.join(known)}",
    )


@dataclass(frozen=True, slots=True)
class OwnMaker:
    """Makes bindings of a workload's file, for one version of CUB."""

    path: Path
    given: OwnWorkload
    known: tuple[AxisType, ...]
    """The types of CUB's benchmarks."""
    spellings: Mapping[str, str]
    """How the compiler prints those."""

    @property
    def name(self) -> str:
        """What results call it."""
        return PREFIX + (self.given.name or re.sub(r"\W", "_", self.path.stem))

    def make(
        self, call: OwnCallBinding, like: BenchmarkBinding, runs: Sequence[RunBinding]
    ) -> OwnBinding:
        """The benchmark, how it runs, and what its types are."""
        values = self._values(call, like)
        typed = {axis: self._type(text) for axis, text in values.items()}
        for axis in call.numbers:
            if typed[axis] not in self.known:
                raise self._wrong(
                    f"types: {axis} of {call.algorithm} is a type of numbers, and not"
                    f" {typed[axis].name}",
                    "F32, I64 or std::uint8_t is one.",
                )
        named = {axis: one.name for axis, one in typed.items()}
        roles = {**like.roles, **call.roles}
        if call.role is not None:
            roles[call.role] = f"axis::{OPERATOR}"
        benchmark = like.model_copy(
            update={
                "name": self.name,
                "like": like.name,
                "axes": {axis: (name,) for axis, name in named.items()},
                "roles": roles,
                "renamed": {},
                "ignored": (),
                "algorithm_call": None,
                "note": None,
            }
        )
        # Where there are several left, their sub-benchmarks differ in inputs, which the file says.
        run = next(one for one in runs if _fits(one, named))
        own = tuple(one for one in typed.values() if one not in self.known)
        return OwnBinding(call, like, benchmark, self._run(call, run, benchmark, typed), own)

    def _values(self, call: OwnCallBinding, like: BenchmarkBinding) -> dict[str, str]:
        """Axis → what the file or the binding says."""
        given, types = self.given, {a: text for a, text in call.types.items() if a in like.axes}
        if unknown := given.types.keys() - types.keys():
            raise self._wrong(
                f"types: {call.algorithm} has no {', '.join(sorted(unknown))}",
                f"It has: {', '.join(types)}",
            )
        found = {**call.defaults, **given.types}
        if missing := [axis for axis in types if axis not in found]:
            axis = missing[0]
            raise self._wrong(f"types: {axis} is missing: {types[axis]}", f'{axis} = "float"')
        found = {axis: found[axis] for axis in types}
        if call.operator is None and given.operator is not None:
            raise self._wrong(f"{call.algorithm} takes no operator", "Leave it out.")
        if call.operator is not None:
            functor = given.operator or call.plain
            if functor is None:
                raise self._wrong(f"operator is missing: {call.operator}", "Name a functor.")
            found[OPERATOR] = functor
        return found

    def _type(self, text: str) -> AxisType:
        """A type that is known by CUB's benchmarks, or one of its own."""
        plain = " ".join(text.split())
        for one in self.known:
            if plain.removeprefix("::") in self._names(one):
                return one
        if _is_constant(plain):
            return AxisType(name=plain, cpp=plain)
        cpp = plain if plain.startswith("::") or _BUILT_IN.match(plain) else f"::{plain}"
        return AxisType(name=plain, cpp=cpp, header=self.given.header)

    def _names(self, one: AxisType) -> set[str]:
        """What a type of CUB's benchmarks is called: `I32`, `cuda::std::int32_t`, `int`."""
        cpp = one.cpp.removeprefix("::")
        short = cpp.removeprefix("cuda::std::")
        found = {one.name, cpp}
        if short in self.spellings or short.startswith("uint"):
            found |= {short, f"std::{short}", self.spellings.get(short, short)}
        return found

    def _run(
        self,
        call: OwnCallBinding,
        run: RunBinding,
        benchmark: BenchmarkBinding,
        typed: Mapping[str, AxisType],
    ) -> RunBinding:
        """How the benchmark runs, with sizes and contents of the file's."""
        given = self.given
        if unknown := given.axes.keys() - call.axes.keys():
            raise self._wrong(
                f"axes: {call.algorithm} has no {', '.join(sorted(unknown))}",
                f"It has: {', '.join(call.axes) or 'none'}",
            )
        axes = {ELEMENTS: tuple(str(one.elements) for one in given.size)}
        axes |= {axis: given.axes.get(axis, (value,)) for axis, value in call.axes.items()}
        if given.input.entropy and ENTROPY in axes:
            axes[ENTROPY] = (given.input.entropy,)
        buffers = {
            name: self._buffer(call, name, one, typed, _axis_of(one, benchmark))
            for name, one in run.buffers.items()
        }
        return run.of(run.every_subbench[0]).model_copy(
            update={
                "subbench": "base",
                "benchmarks": (self.name,),
                "workload": {},
                "axes": axes,
                "weights": {ELEMENTS: tuple(one.weight for one in given.size)},
                "buffers": buffers,
                "includes": tuple(dict.fromkeys((*run.includes, *filter(None, [given.header])))),
                "arguments": call.arguments or run.arguments,
                "sizes": run.sizes if call.sizes is None else call.sizes,
            }
        )

    def _buffer(
        self,
        call: OwnCallBinding,
        name: str,
        one: BufferBinding,
        typed: Mapping[str, AxisType],
        axis: str,
    ) -> BufferBinding:
        """A buffer with the file's contents, or with results that are right for its elements.

        What is counted is right, or it is not.
        """
        of = typed.get(axis)
        given, update = self.given, dict[str, object]()
        if name in call.fills:
            update = {"fill": call.fills[name], "exact": None}
        own = of.name if of is not None and of not in self.known else None
        if own or given.operator is not None:
            update["exact"] = None
        if name in call.inputs:
            how = given.input.how
            if own and how in NUMBERS:
                raise self._wrong(
                    f'input: how = "{how}" makes numbers, and an element is {own}',
                    'Say how = "generator" and name a functor that makes an element of an index'
                    ' and 64 random bits; or how = "bytes", "constant" or "file".',
                )
            if (fill := self._fill(given.input, call, one)) is not None:
                update |= {"fill": fill, "exact": None}
        if one.result in {"equal", "close"} and axis in call.types and axis not in call.defaults:
            result = given.result
            update |= {"result": "close" if result.tolerance else "equal"}
            update |= {"tolerance": result.tolerance, "same": _anywhere(result.same)}
        return one.model_copy(update=update)

    def _fill(self, how: WorkloadInput, call: OwnCallBinding, one: BufferBinding) -> str | None:
        """What fills a buffer, where that is not as the benchmark has it."""
        if how.how == "entropy" and ENTROPY in call.axes:
            return None
        return fill_of(how, self.path, one.type)

    def _wrong(self, what: str, remedy: str) -> InputError:
        return InputError(f"{self.path}: {what}", remedy)


def fill_of(how: WorkloadInput, path: Path, element: str) -> str | None:
    """The call that fills a buffer of elements as a file says; none for any random numbers."""
    if how.least is not None:
        return f"ranged(to, count, {how.least!r}, {how.most!r})"
    if how.how == "entropy":
        return f"uniform(to, count, {round(float(how.entropy or 1) * 1000)})"
    if how.file is not None:
        return f'bytes_of(to, count, "{_file_beside(path, how.file)}")'
    if how.generator is not None:
        return f"made(to, count, {_anywhere(how.generator)}{{}})"
    return {
        "sorted": "rising(to, count)",
        "constant": f"constant(to, count, {element}{{}})",
        "bytes": "random_bytes(to, count)",
    }.get(how.how)


def beside(path: Path, name: str, called: str = "") -> Path:
    """A file that a workload's names; no link, as a compiler quotes what it reads."""
    try:
        found = plain_file(path.resolve().parent, name)
    except NotOpenedError as error:
        raise InputError(f"{path}: {error.reason}", error.remedy) from error
    if found is None:
        raise InputError(f"{path}: there is no {called}{name} beside it")
    return found


def _file_beside(workload: Path, name: str) -> str:
    path = str((workload.parent / name).resolve())  # no compiler reads it: a link is fine
    if not Path(path).is_file():
        raise InputError(
            f"{workload}: input: there is no file {name}", "It lies beside the workload."
        )
    if not _TEXT.fullmatch(path):
        raise InputError(
            f"{workload}: input: the path of {name} has other than plain letters", "Move it."
        )
    return path


def _fits(run: RunBinding, named: Mapping[str, str]) -> bool:
    """Whether a benchmark runs so with these constants; types of one's own are no reason."""
    return all(
        named[axis] in values
        for axis, values in run.workload.items()
        if axis in named and _is_constant(named[axis])
    )


def _axis_of(one: BufferBinding, benchmark: BenchmarkBinding) -> str:
    """The axis that a buffer's elements are of, or come from; none where they are counts."""
    text = one.type
    for _ in benchmark.roles:  # a role may be said in terms of others
        text = _WORD.sub(lambda match: benchmark.roles.get(match[0], match[0]), text)
    found = [name for name in _AXIS.findall(text) if name != OPERATOR]
    return found[-1] if found else ""


def _is_constant(value: str) -> bool:
    return value in {"true", "false"} or value.isdigit()


def _anywhere(name: str | None) -> str | None:
    """A functor's name, from whatever namespace."""
    return name if name is None or name.startswith("::") else f"::{name}"
