"""A kernel of one's own as bindings: a benchmark with runs, and a header that is its policies'."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from policygen.bindings.own_workloads import PREFIX, beside, fill_of
from policygen.errors import InputError
from policygen.model.bindings import (
    BenchmarkBinding,
    BufferBinding,
    FamilyBinding,
    MemberRule,
    RunBinding,
    Site,
)
from policygen.model.expression import Expression
from policygen.model.own_workload import AT_LAUNCH, ELEMENTS, STRATEGY, KernelBuffer, OwnKernel

SITE = "kernel"
FAMILIES = "specializations"
"""How its header is written."""
ROLE = "SizeClass"
"""What the header calls the class of a size."""
POLICY = "KernelPolicy"
RUNTIME = "Elements"


@dataclass(frozen=True)
class KernelMaker:
    """Makes bindings of a kernel's file."""

    path: Path
    given: OwnKernel

    @property
    def name(self) -> str:
        """What results call it."""
        return PREFIX + self.plain

    @property
    def plain(self) -> str:
        """The same without what all of one's own have."""
        if self.given.name:
            return self.given.name
        name = re.sub(r"\W", "_", self.path.stem, flags=re.ASCII)
        return f"kernel_{name}" if name[0].isdigit() else name

    @property
    def source(self) -> Path:
        """The file that has the kernel."""
        return self.folder / self.given.kernel

    @property
    def folder(self) -> Path:
        """Where it lies, with what it includes."""
        return self.path.resolve().parent

    @property
    def header(self) -> str:
        """What a tree calls the header of its policies."""
        return f"tuning_{self.plain}.cuh"

    @property
    def scope(self) -> str:
        """The namespace of that."""
        return f"{self.plain}_tuning"

    @property
    def functions(self) -> list[str]:
        """The names of the functions that are launched, without scopes and template arguments."""
        texts = (one.function or "" for one in self.given.ways)
        return sorted({text.partition("<")[0].rpartition("::")[2].strip() for text in texts})

    @cached_property
    def members(self) -> dict[str, MemberRule]:
        """What a policy has, by the parameter that fills it."""
        return {
            label: MemberRule(parameter=label, choices=self._choices(label) or None)
            for label in self.given.every_parameter
        }

    def _choices(self, label: str) -> tuple[str, ...]:
        """What values are in the header."""
        words = self.given.every_parameter[label].words
        return tuple(f"{one}" for one in words) if label == STRATEGY else words

    def spelled(self, variant: Mapping[str, int]) -> dict[str, str]:
        """What parameters are in the header."""
        return {
            label: choices[value] if (choices := self._choices(label)) else str(value)
            for label, value in variant.items()
        }

    def type_of(self, label: str) -> str:
        """What a member of a policy is."""
        if not self._choices(label):
            return "int"
        return "strategies" if label == STRATEGY else "auto"

    def sites(self) -> tuple[Site, ...]:
        """Where its policy is selected: in families of specializations, as CUB's were."""
        common = {
            "name": SITE,
            "header": self.header,
            "namespace": self.scope,
            "includes": ("cub/config.cuh",),
            "hub": f"policy_hub<{ROLE}>",
            "policy": POLICY,
            "marked": next(iter(self._numbers()), "items"),
            "values": {label: f"policy::{label}" for label in self.members},
        }
        return tuple(
            Site.model_validate({**common, "dialect": dialect})
            for dialect in (FAMILIES, "selectors")
        )

    def family(self, arch: str) -> FamilyBinding:
        """What was tuned for an architecture."""
        return FamilyBinding(
            site=SITE,
            name=f"{arch}_tuning",
            args=(ROLE,),
            members=self.members,
            mark=next(iter(self._numbers()), "items"),
        )

    @property
    def benchmarks(self) -> tuple[BenchmarkBinding, ...]:
        """What is measured: a benchmark for each class of sizes, `own.saxpy.large`."""
        ranges = {label: one.numbers for label, one in self.given.every_parameter.items()}
        return tuple(
            BenchmarkBinding(
                name=name,
                site=SITE,
                constants={ROLE: str(at)},
                parameters={label: _range(numbers) for label, numbers in ranges.items()},
            )
            for at, name in enumerate(self.names)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What results call the classes of sizes; the kernel, where there is one."""
        classes = self.given.classes
        return tuple(f"{self.name}.{one}" for one in classes) if len(classes) > 1 else (self.name,)

    @property
    def pattern(self) -> str:
        """What `-R` would be to mean it."""
        return f"({'|'.join(map(re.escape, self.names))})$"

    def runs(self) -> Iterator[RunBinding]:
        """How each class of sizes runs."""
        self._check()
        given = self.given
        buffers = {name: self._buffer(name, one) for name, one in given.buffer.items()}
        for name, of in zip(self.names, given.classes, strict=True):
            sizes = [one for one in given.size if (one.of or "all") == of]
            yield RunBinding(
                benchmarks=(name,),
                axes={RUNTIME: tuple(str(one.elements) for one in sizes)},
                weights={RUNTIME: tuple(one.weight for one in sizes)},
                sizes={ELEMENTS: RUNTIME},
                buffers=buffers,
                includes=(given.header,) if given.header else (),
                function=given.ways[0].function or "",
                arguments=", ".join(given.arguments),
                form="stream",
            )

    def values(self, variant: Mapping[str, int]) -> dict[str, str]:
        """What parameters are in C++; refused where one has another value, or a rule forbids it."""
        found = {}
        for label, one in self.given.every_parameter.items():
            if variant[label] not in one.numbers:
                raise InputError(f"{label} = {variant[label]} is none of its values")
            found[label] = one.words[variant[label]] if one.words else str(variant[label])
        for text in self.given.constraints:
            if not Expression(text).value(variant):
                raise InputError(f"it breaks {text}")
        return found

    @property
    def only(self) -> dict[str, tuple[int, ...]]:
        """The values of each parameter, rising."""
        every = self.given.every_parameter
        return {label: tuple(sorted(one.numbers)) for label, one in every.items()}

    @property
    def start(self) -> dict[str, int]:
        """What parameters are today."""
        return {label: one.start for label, one in self.given.every_parameter.items()}

    def _numbers(self) -> Iterator[str]:
        return (label for label, one in self.given.every_parameter.items() if not one.words)

    def _buffer(self, name: str, one: KernelBuffer) -> BufferBinding:
        fill = None
        if one.input is not None:
            fill = fill_of(one.input, self.path, one.type) or "plain(to, count)"
        result = ("close" if one.tolerance else "equal") if one.result else None
        return BufferBinding(
            type=one.type,
            count=self._cpp(f"buffer.{name}.count", one.count, {ELEMENTS}),
            fill=fill,
            result=result,
            tolerance=one.tolerance,
            same=one.same and (one.same if one.same.startswith("::") else f"::{one.same}"),
            modified=one.modified,
        )

    def _check(self) -> None:
        """Refuses what asks for names that are not there, or starts with what cannot be."""
        given, known = self.given, {*self.given.every_parameter}
        for name in filter(None, (given.kernel, given.header)):
            beside(self.path, name)
        if not known:
            raise InputError(
                f"{self.path}: parameter is missing: nothing varies",
                f"Say [parameter.NAME], several [[strategy]], or %RANGE% lines in {given.kernel}.",
            )
        for text in given.constraints:
            self._cpp("constraints", text, known)
        for way in given.ways:
            launch = known | {ELEMENTS}
            self._cpp("block", way.block or "", {*launch, "sms", "best_block"})
            self._cpp("shared", way.shared or "", {*launch, "block", "sms"})
            self._cpp("grid", way.grid or "", {*launch, "block", *AT_LAUNCH})
        if given.traffic:
            self._cpp("traffic", given.traffic, {ELEMENTS})
        try:
            self.values(self.start)
        except InputError as error:
            raise InputError(
                f"{self.path}: what the kernel has today cannot be: {error.message}",
                "Say a default for its parameters that can.",
            ) from error

    def _cpp(self, what: str, text: str, known: set[str]) -> str:
        found = Expression(text)
        if unknown := sorted(found.names - known):
            raise InputError(
                f"{self.path}: {what}: {unknown[0]} is not known",
                f"It has: {', '.join(sorted(known))}",
            )
        return found.cpp


def _range(numbers: tuple[int, ...]) -> str:
    """The range that holds all values: those in between are none."""
    ordered = sorted(numbers)
    steps = {right - left for left, right in pairwise(ordered)}
    step = min(steps, default=1)
    if any(one % step for one in steps):
        step = 1
    return f"{ordered[0]}:{ordered[-1]}:{step}"


_TAKEN: list[KernelMaker] = []


def taken_kernel() -> KernelMaker | None:
    """The kernel of one's own that bindings have besides those of their files."""
    return _TAKEN[-1] if _TAKEN else None


@contextmanager
def kept_as_kernel(maker: KernelMaker) -> Iterator[None]:
    """Lets bindings have a kernel as long as the block lasts."""
    _TAKEN.append(maker)
    try:
        yield
    finally:
        _TAKEN.pop()
