"""`cccl_meta_bench.csv`: the search space as CMake wrote it for a tuning build."""

import re
from dataclasses import dataclass

from policygen.errors import SourceError
from policygen.model.bench import Benchmark, ParameterRange
from policygen.source.benchmarks.ranges import check_new, parse_range
from policygen.source.text import Text, decode

# ctk_version,13.0.88
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:ctk_version|cccl_revision),")
# cub.bench.reduce.sum,TUNE_ITEMS_PER_THREAD|ipt=8:24:8
_ROW = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\w-]+(?:\.[\w-]+)+(?:,\w+\|[^\n]*)?\s*?(?:\n|\Z)")
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)+")
_PARAMETER = re.compile(r"([^|=,]*)\|([^|=,]*)=([^|=,]*)")
FORM = "the form is: NAME,MACRO|label=start:end:step,..."


@dataclass(frozen=True, slots=True)
class Meta:
    """One file; what is wrong in it stands in `errors`."""

    ctk: str | None
    cccl: str | None
    benchmarks: tuple[Benchmark, ...]
    errors: tuple[SourceError, ...]


def is_meta(data: bytes) -> bool:
    """Whether a file is a search space, by its first line."""
    return bool(_HEAD.match(data) or _ROW.match(data))


def read_meta(text: Text) -> Meta:
    """All lines that can be read."""
    heads: dict[str, str] = {}
    found: dict[str, Benchmark] = {}
    errors: list[SourceError] = []
    at = 0
    for line in text.data.split(b"\n"):
        row = decode(line).strip().lstrip("\ufeff")
        key, _, value = row.partition(",")
        try:
            if key in {"ctk_version", "cccl_revision"}:
                heads[key] = value.strip()
            elif row:
                one = _benchmark(text, at, key, line)
                if one.name in found:
                    raise text.error(at, f"{one.name} stands here twice", width=len(one.name))
                found[one.name] = one
        except SourceError as error:
            errors.append(error)
        at += len(line) + 1
    return Meta(
        heads.get("ctk_version"), heads.get("cccl_revision"), tuple(found.values()), tuple(errors)
    )


def _benchmark(text: Text, at: int, name: str, line: bytes) -> Benchmark:
    if not _NAME.fullmatch(name):
        raise text.error(at, f"{name!r} is no benchmark name", width=max(1, len(name)), remedy=FORM)
    parameters: list[ParameterRange] = []
    _, comma, rest = line.partition(b",")
    offset = at + len(line) - len(rest)
    for part in rest.split(b",") if comma and rest.strip() else ():
        match = _PARAMETER.fullmatch(decode(part).strip())
        if match is None:
            message = f"{decode(part).strip()!r} is no parameter"
            raise text.error(offset, message, width=max(1, len(part.strip())), remedy=FORM)
        one = parse_range(text, offset + part.index(b"=") + 1, *match.groups())
        check_new(text, offset + part.index(b"|") + 1, one, parameters)
        parameters.append(one)
        offset += len(part) + 1
    return Benchmark(name=name, source=text.path, parameters=tuple(parameters))
