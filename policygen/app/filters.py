"""Filters: headers, and the values of `-R`, `-a`, and `--arch` as typed."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from policygen.bindings.words import amd_archs, ladder, older
from policygen.errors import InputError, PolicygenError
from policygen.model.arch import UNKNOWN, arch_and_gpu, arch_number, is_amd, parse_arch
from policygen.model.trees import Cub, Library
from policygen.proof.toolchain import find_toolchain
from policygen.rocprim.structs import enumerated_archs


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


EVERYTHING = Filter()


def parse_regex(text: str) -> re.Pattern[str]:
    """Parses CCCL's `-R`: the pattern must match at the start of the name, not all of it."""
    try:
        return re.compile(text)
    except re.error as error:
        raise InputError(f"-R {text!r} is no regular expression: {error}") from error


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
        raise InputError("no architecture is given", "Name the one that was measured: --arch sm90")
    if len(archs) > 1:
        raise InputError(
            f"one architecture is tuned at a time, and --arch names {', '.join(archs)}",
            "Name the one that was measured.",
        )
    return archs[0]


def check_archs(cub: Cub, texts: Sequence[str]) -> None:
    """Raises an error for architectures that a tree does not have, before a compiler does."""
    archs = sorted(parse_archs(texts), key=arch_number)
    available, absent = _SPLIT_ARCHS[cub.library](cub, archs)
    if absent:
        raise InputError(
            f"{cub.title} has no architecture {', '.join(absent)}",
            f"It has: {', '.join(available)}.",
        )


def _split_nvidia_archs(cub: Cub, archs: Sequence[str]) -> tuple[Sequence[str], list[str]]:
    """Returns the architectures that there are, and the given ones that there are not."""
    del cub  # any tree can be compiled for a later architecture
    return ladder(), [arch for arch in archs if is_amd(arch)]


def _split_amd_archs(cub: Cub, archs: Sequence[str]) -> tuple[Sequence[str], list[str]]:
    """The same for a tree that enumerates its architectures."""
    enumerated = enumerated_archs(Path(cub.root))
    available = (*enumerated, UNKNOWN) if enumerated else amd_archs()
    return available, [arch for arch in archs if arch_and_gpu(arch)[0] not in available]


_SPLIT_ARCHS: Mapping[Library, Callable[[Cub, Sequence[str]], tuple[Sequence[str], list[str]]]] = {
    "cub": _split_nvidia_archs,
    "rocprim": _split_amd_archs,
}


def _typed_arch(text: str, *, amd: bool) -> str:
    (arch,) = parse_archs([text])
    if is_amd(arch):
        if not amd and arch_and_gpu(arch)[0] not in amd_archs():
            raise InputError(
                f"there is no architecture {arch} that rocPRIM has configs for",
                f"There are: {', '.join(amd_archs())}.",
            )
        return arch
    if text[-1] in "afAF":
        raise InputError(
            f"{text!r} is a compiler's target, and CUB selects by architecture alone",
            f"Write --arch {arch}, which is all of its targets.",
        )
    if arch not in {*ladder(), *older()} and arch not in _compiler_archs():
        raise InputError(
            f"there is no architecture {arch}",
            f"There are: {', '.join(ladder())}, and what nvcc compiles for.",
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
