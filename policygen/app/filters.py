"""What a question is about: headers, and what `-R`, `-a` and `--arch` say, as they are typed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.model.arch import parse_arch


@dataclass(frozen=True, slots=True)
class Filter:
    """What is asked for; all of what is left empty."""

    headers: tuple[str, ...] = ()
    """Algorithms or header files: `scan`, `tuning_scan.cuh`."""
    regex: str = ""
    axes: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()

    @property
    def pattern(self) -> re.Pattern[str]:
        """What names begin with."""
        return parse_regex(self.regex)

    @property
    def values(self) -> Mapping[str, frozenset[str]]:
        """The values of axes."""
        return parse_axes(self.axes)


EVERYTHING = Filter()


def parse_regex(text: str) -> re.Pattern[str]:
    """CCCL's `-R`: the pattern must match at the beginning of the name, not all of it."""
    try:
        return re.compile(text)
    except re.error as error:
        raise InputError(f"-R {text!r} is no regular expression: {error}") from error


def parse_archs(texts: Sequence[str]) -> frozenset[str]:
    """Architectures as they are typed: `sm_90`, `90` and `9.0` are `sm90`."""
    try:
        return frozenset(parse_arch(text) for text in texts)
    except ValueError as error:
        raise InputError(str(error)) from error


def parse_target(text: str | None) -> str:
    """The architecture that is tuned."""
    if text is None:
        raise InputError("no architecture is given", "Name the one that was measured: --arch sm90")
    (arch,) = parse_archs([text])
    return arch


def parse_axes(texts: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """CCCL's `-a`: `Axis=value` or `Axis=[v1,v2]`; the last one of a name counts."""
    chosen: dict[str, frozenset[str]] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"-a {text!r} is not of the form AXIS=VALUE")
        values = value.removeprefix("[").removesuffix("]").split(",")
        chosen[name] = frozenset(v.strip() for v in values)
    return chosen


def nothing_matches() -> InputError:
    """A filter that leaves no workload."""
    return InputError("nothing matches", "See what there is: policygen db info DB...")
