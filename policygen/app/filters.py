"""Filters: headers, and the values of `-R`, `-a`, and `--arch` as typed."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from policygen.bindings.words import archs_file, ladder
from policygen.errors import InputError, PolicygenError
from policygen.headers.protocol import Notation
from policygen.libraries import part_of
from policygen.model.arch import arch_and_gpu, arch_number, is_amd, parse_arch
from policygen.model.trees import Cub
from policygen.proof.toolchain import find_toolchain


@dataclass(frozen=True, slots=True)
class Filter:
    """What is selected; an empty field selects everything."""

    headers: tuple[str, ...] = ()
    """Algorithms or header files: `scan`, `tuning_scan.cuh`."""
    regex: str = ""
    axes: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern that names must start with."""
        return parse_regex(self.regex)

    @property
    def values(self) -> Mapping[str, frozenset[str]]:
        """The selected values of axes."""
        return parse_axes(self.axes)

    @property
    def compile_time(self) -> "Filter":
        """The same without runtime axes; CCCL writes `T{ct}`, or the bare name, for the others."""
        names = ((text, text.partition("=")[0]) for text in self.axes)
        kept = tuple(text for text, name in names if "{io}" not in name and "[" not in name)
        return replace(self, axes=kept)

    def accepts(self, values: Mapping[str, str]) -> bool:
        """Returns whether `-a` selects a runtime workload."""
        return all(
            values[axis] in accepted for axis, accepted in self.values.items() if axis in values
        )


EVERYTHING = Filter()


def parse_regex(text: str) -> re.Pattern[str]:
    """Parses CCCL's `-R`: the pattern must match at the start of the name, not all of it."""
    try:
        return re.compile(text)
    except re.error as error:
        raise InputError(f"-R {text!r} is not a regular expression: {error}") from error


def parse_archs(texts: Sequence[str]) -> frozenset[str]:
    """Parses architectures: `sm_90`, `90`, and `9.0` are `sm90`, with or without commas."""
    try:
        return frozenset(parse_arch(arch) for text in texts for arch in text.split(","))
    except ValueError as error:
        raise InputError(str(error)) from error


def typed_archs(
    texts: Sequence[str], words: Sequence[str] = (), *, amd: bool = False
) -> tuple[str, ...]:
    """Parses architectures and verifies that they exist, as CUB would accept any number.

    Words in `words` stand for several architectures and are kept. `amd` allows any AMD
    architecture.
    """
    archs = [arch.strip() for text in texts for arch in text.split(",")]
    return tuple(
        dict.fromkeys(arch if arch in words else _typed_arch(arch, amd=amd) for arch in archs)
    )


def parse_target(texts: Sequence[str]) -> str:
    """Parses the architecture to tune; there must be exactly one."""
    archs = sorted(parse_archs(texts), key=arch_number)
    if not archs:
        raise InputError(
            "no architecture given", "Name the architecture that was measured: --arch sm90"
        )
    if len(archs) > 1:
        raise InputError(
            f"only one architecture is tuned at a time, but --arch names {', '.join(archs)}",
            "Name the architecture that was measured.",
        )
    return archs[0]


def check_archs(cub: Cub, texts: Sequence[str]) -> None:
    """Raises an error for architectures that a tree does not have, before a compiler does."""
    archs = sorted(parse_archs(texts), key=arch_number)
    if notation := part_of(cub.library, Notation):
        available = notation.archs(Path(cub.root))
        absent = [arch for arch in archs if arch_and_gpu(arch)[0] not in available]
    else:  # any tree can be compiled for a later architecture
        available = ladder()
        absent = [arch for arch in archs if is_amd(arch)]
    if absent:
        raise InputError(
            f"{cub.title} has no architecture {', '.join(absent)}",
            f"It has: {', '.join(available)}.",
        )
    if notation and (gpus := notation.gpus(Path(cub.root))):
        unknown = [arch for arch in archs if arch_and_gpu(arch)[1] not in {"", *gpus}]
        if unknown:
            raise InputError(
                f"{cub.title} has no GPU {', '.join(unknown)}", f"It has: {', '.join(gpus)}."
            )


def _typed_arch(text: str, *, amd: bool) -> str:
    (arch,) = parse_archs([text])
    if is_amd(arch):
        if not amd and arch_and_gpu(arch)[0] not in archs_file().amd:
            raise InputError(
                f"rocPRIM has no configs for {arch}",
                f"Available: {', '.join(archs_file().amd)}.",
            )
        return arch
    if text[-1] in "afAF":
        raise InputError(
            f"{text!r} is a compiler target, but CUB selects only by architecture",
            f"Write --arch {arch}, which covers all of its targets.",
        )
    if arch not in {*ladder(), *archs_file().older} and arch not in _compiler_archs():
        raise InputError(
            f"unknown architecture {arch}",
            f"Available: {', '.join(ladder())}, and the architectures that nvcc compiles for.",
        )
    return arch


def _compiler_archs() -> tuple[str, ...]:
    """Returns the compiler's architectures, which may be newer than the ladder; else none."""
    with suppress(PolicygenError):
        return find_toolchain().archs
    return ()


def parse_axes(texts: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Parses CCCL's `-a`: `Axis=value` or `Axis=[v1,v2]`. The last value for a name wins."""
    chosen: dict[str, frozenset[str]] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"-a {text!r} is not of the form AXIS=VALUE")
        values = value.removeprefix("[").removesuffix("]").split(",")
        chosen[name] = frozenset(v.strip() for v in values)
    return chosen
