"""Makes bindings from a user's kernel: benchmarks with runs, and a header for its policies."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from policygen.bindings.load import Bound, BoundFile
from policygen.bindings.words import ladder
from policygen.errors import InputError
from policygen.model.bindings import (
    BenchmarkBinding,
    BufferBinding,
    FamilyBinding,
    MemberRule,
    RunBinding,
    Site,
)
from policygen.model.expression import Expression, check_constraints
from policygen.model.own_workload import (
    AT_LAUNCH,
    ELEMENTS,
    PREFIX,
    STRATEGY,
    KernelBuffer,
    KernelParameter,
    OwnKernel,
    fill_of,
    qualified,
)
from policygen.model.trees import BoundVersion, Cub
from policygen.opening import beside

SITE = "kernel"
FAMILIES = "specializations"
"""The dialect of its header."""
ROLE = "SizeClass"
"""The template parameter of the header for the class of a size."""
POLICY = "KernelPolicy"
RUNTIME = "Elements"


@dataclass(frozen=True, eq=False)
class KernelMaker(BoundFile):
    """Makes bindings from a kernel's file."""

    given: OwnKernel

    @property
    def name(self) -> str:
        """The name in results."""
        return PREFIX + self.plain

    def join(self, algorithms: tuple[Bound, ...], version: BoundVersion) -> tuple[Bound, ...]:
        """Returns a version's algorithms and the kernel, which is an algorithm by itself."""
        del version
        families, runs = tuple(map(self.family, ladder())), tuple(self.runs())
        kernel = Bound(self.name, self.sites(), families, self.benchmarks, (), runs=runs)
        return (*algorithms, kernel)

    @property
    def plain(self) -> str:
        """The name without the prefix of user workloads."""
        if self.given.name:
            return self.given.name
        name = re.sub(r"\W", "_", self.path.stem, flags=re.ASCII)
        return f"kernel_{name}" if name[0].isdigit() else name

    @property
    def source(self) -> Path:
        """The file that contains the kernel."""
        return self.folder / self.given.kernel

    @property
    def header(self) -> str:
        """The name of the header with its policies in a tree."""
        return f"tuning_{self.plain}.cuh"

    @property
    def scope(self) -> str:
        """The namespace of that header."""
        return f"{self.plain}_tuning"

    @property
    def functions(self) -> list[str]:
        """Names of the launched functions, without scopes and template arguments."""
        texts = (strategy.function or "" for strategy in self.given.ways)
        return sorted({text.partition("<")[0].rpartition("::")[2].strip() for text in texts})

    @cached_property
    def parameters(self) -> dict[str, KernelParameter]:
        """All parameters, including the strategy if there are several."""
        return self.given.every_parameter

    @cached_property
    def members(self) -> dict[str, MemberRule]:
        """The policy's members by the parameter that sets them."""
        return {
            label: MemberRule(parameter=label, choices=parameter.words or None)
            for label, parameter in self.parameters.items()
        }

    def spelled(self, variant: Mapping[str, int]) -> dict[str, str]:
        """Returns how the header spells a variant's parameters."""
        return {
            label: words[value] if (words := self.parameters[label].words) else str(value)
            for label, value in variant.items()
        }

    def type_of(self, label: str) -> str:
        """Returns the type of a policy's member."""
        if not self.parameters[label].words:
            return "int"
        return "strategies" if label == STRATEGY else "auto"

    def sites(self) -> tuple[Site, ...]:
        """Returns the sites that select its policy: specializations, as in older CUB."""
        common = {
            "name": SITE,
            "header": self.header,
            "namespace": self.scope,
            "includes": ("cub/config.cuh",),
            "hub": f"policy_hub<{ROLE}>",
            "policy": POLICY,
            "marked": self._mark,
            "values": {label: f"policy::{label}" for label in self.members},
        }
        return tuple(
            Site.model_validate({**common, "dialect": dialect})
            for dialect in (FAMILIES, "selectors")
        )

    def family(self, arch: str) -> FamilyBinding:
        """Returns the family for an architecture."""
        name = f"{arch}_tuning"
        return FamilyBinding(
            site=SITE, name=name, args=(ROLE,), members=self.members, mark=self._mark
        )

    @property
    def benchmarks(self) -> tuple[BenchmarkBinding, ...]:
        """The benchmarks, one for each size class, such as `own.saxpy.large`."""
        ranges = {label: _range(parameter.numbers) for label, parameter in self.parameters.items()}
        return tuple(
            BenchmarkBinding(name=name, site=SITE, constants={ROLE: str(index)}, parameters=ranges)
            for index, name in enumerate(self.names)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the size classes in results; the kernel's name if there is only one."""
        classes = self.given.classes
        names = tuple(f"{self.name}.{size_class}" for size_class in classes)
        return names if len(classes) > 1 else (self.name,)

    @property
    def pattern(self) -> str:
        """The `-R` pattern that selects it."""
        return f"({'|'.join(map(re.escape, self.names))})$"

    def runs(self) -> Iterator[RunBinding]:
        """Yields how each size class runs."""
        self._check()
        kernel = self.given
        buffers = {name: self._buffer(name, buffer) for name, buffer in kernel.buffer.items()}
        for name, size_class in zip(self.names, kernel.classes, strict=True):
            sizes = [size for size in kernel.size if (size.of or "all") == size_class]
            yield RunBinding(
                benchmarks=(name,),
                axes={RUNTIME: tuple(str(size.elements) for size in sizes)},
                weights={RUNTIME: tuple(size.weight for size in sizes)},
                sizes={ELEMENTS: RUNTIME},
                buffers=buffers,
                includes=(kernel.header,) if kernel.header else (),
                function=kernel.ways[0].function or "",
                arguments=", ".join(kernel.arguments),
                form="stream",
            )

    def values(self, variant: Mapping[str, int]) -> dict[str, str]:
        """Returns the parameters in C++; raises for an unknown value or a violated constraint."""
        for label, parameter in self.parameters.items():
            if variant[label] not in parameter.numbers:
                raise InputError(f"{label} = {variant[label]} is not one of its values")
        check_constraints(self.given.constraints, variant)
        return self.spelled({label: variant[label] for label in self.parameters})

    @property
    def only(self) -> dict[str, tuple[int, ...]]:
        """The values of each parameter in ascending order."""
        return {label: tuple(sorted(item.numbers)) for label, item in self.parameters.items()}

    @property
    def start(self) -> dict[str, int]:
        """The current value of each parameter."""
        return {label: parameter.start for label, parameter in self.parameters.items()}

    @property
    def _mark(self) -> str:
        """The member that carries marks: the first one that is a number."""
        return next((label for label, item in self.parameters.items() if not item.words), "items")

    def _buffer(self, name: str, buffer: KernelBuffer) -> BufferBinding:
        fill = None
        if buffer.input is not None:
            fill = fill_of(buffer.input, self.path, buffer.type) or "plain(to, count)"
        result = ("close" if buffer.tolerance else "equal") if buffer.result else None
        return BufferBinding(
            type=buffer.type,
            count=self._cpp(f"buffer.{name}.count", buffer.count, {ELEMENTS}),
            fill=fill,
            result=result,
            tolerance=buffer.tolerance,
            same=qualified(buffer.same),
            modified=buffer.modified,
        )

    def _check(self) -> None:
        """Raises if a name is not defined, or if the current parameters are invalid."""
        kernel, labels = self.given, {*self.parameters}
        for name in filter(None, (kernel.kernel, kernel.header)):
            beside(self.path, name)
        if not labels:
            raise InputError(
                f"{self.path}: no parameter varies",
                f"Add [parameter.NAME], several [[strategy]], or %RANGE% lines in {kernel.kernel}.",
            )
        for text in kernel.constraints:
            self._cpp("constraints", text, labels)
        for strategy in kernel.ways:
            launch_names = labels | {ELEMENTS}
            self._cpp("block", strategy.block or "", {*launch_names, "sms", "best_block"})
            self._cpp("shared", strategy.shared or "", {*launch_names, "block", "sms"})
            self._cpp("grid", strategy.grid or "", {*launch_names, "block", *AT_LAUNCH})
        if kernel.traffic:
            self._cpp("traffic", kernel.traffic, {ELEMENTS})
        try:
            self.values(self.start)
        except InputError as error:
            raise InputError(
                f"{self.path}: the kernel's current values are not valid: {error.message}",
                "Give its parameters valid defaults.",
            ) from error

    def _cpp(self, key: str, text: str, names: set[str]) -> str:
        expression = Expression(text)
        if unknown := sorted(expression.names - names):
            raise InputError(
                f"{self.path}: {key}: unknown name {unknown[0]}",
                f"It has: {', '.join(sorted(names))}",
            )
        return expression.cpp


def _range(numbers: tuple[int, ...]) -> str:
    """Returns the smallest range that contains all values; it may contain others."""
    ordered = sorted(numbers)
    differences = {right - left for left, right in pairwise(ordered)}
    step = min(differences, default=1)
    if any(difference % step for difference in differences):
        step = 1
    return f"{ordered[0]}:{ordered[-1]}:{step}"


def kernel_of(cub: Cub) -> KernelMaker | None:
    """Returns the user's kernel among a tree's bindings, if there is one."""
    return cub.own if isinstance(cub.own, KernelMaker) else None
