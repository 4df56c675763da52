"""What the reports on tuning databases have in common: lines, headings, numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from policygen.model.results import Interval, PointRatio, RunKey, Verdict
from policygen.report.bench import wrap

Line = tuple[tuple[str, str], ...]
"""Pieces of text, each with its style."""

DOT = " · "
DASH = "\N{EN DASH}"
APPROXIMATE = (
    "approximate: the declared values of the {io} axes are not known, weights come from the values"
    " present; give the benchmark's source with --bench"
)
STYLES: Mapping[Verdict | None, str] = {
    "better": "green",
    "worse": "red",
    "mixed": "yellow",
    "too close to call": "dim",
    None: "",
}


def line(text: str, style: str = "") -> Line:
    """A line of one style."""
    return ((text, style),)


def filled(
    parts: Iterable[str],
    joint: str,
    width: int,
    *,
    style: str = "",
    first: str = "",
    hang: str | None = None,
) -> Iterator[Line]:
    """Lines of whole parts; all but the first begin with `hang`."""
    hang = first if hang is None else hang
    rows = wrap(parts, joint, width - max(len(first), len(hang)))
    for index, row in enumerate(rows):
        yield line((hang if index else first) + row, style)


def prose(text: str, width: int, *, style: str = "", indent: str = "") -> Iterator[Line]:
    """Words, as many on a line as there is room for."""
    return filled(text.split(), " ", width, style=style, first=indent)


def note(text: str, width: int) -> Iterator[Line]:
    """A remark below the results."""
    return filled(text.split(), " ", width, style="dim", hang="  ")


def workload_name(algorithm: str, workload: Mapping[str, str]) -> list[str]:
    """`cub.bench.reduce.sum[T{ct}=I32, OffsetT{ct}=I32]` in parts that `, ` joins."""
    if not workload:
        return [algorithm]
    parts = [f"{axis}={value}" for axis, value in workload.items()]
    parts[0] = f"{algorithm}[{parts[0]}"
    parts[-1] += "]"
    return parts


def key_parts(key: RunKey, database: str | None) -> list[str]:
    """Where it was measured, in parts."""
    # NVBench's results name neither toolkit nor CCCL.
    versions = [
        f"{name} {value}" for name, value in (("ctk", key.ctk), ("cccl", key.cccl)) if value
    ]
    return [key.gpu, *versions, *([database] if database else [])]


def heading(name: Sequence[str], where: Sequence[str], width: int) -> Iterator[Line]:
    """What was measured and where, on one line or on as many as it takes."""
    title, place = ", ".join(name), DOT.join(where)
    if len(title) + 2 + len(place) <= width:
        yield ((title, "bold"), (f"  {place}", "dim"))
        return
    yield from filled(name, ", ", width, style="bold", hang="    ")
    yield from filled(where, DOT, width, style="dim", first="  ")


def span(interval: Interval | None) -> str:
    """Both ends with a dash between them."""
    return f"{interval.low:.3f}{DASH}{interval.high:.3f}" if interval else ""


def short_point(worst: PointRatio) -> str:
    """`16/0.201`; a sub-benchmark other than `base` goes before it."""
    values = "/".join(worst.point.values())
    if worst.subbench == "base" and values:
        return values
    return f"{worst.subbench}:{values}" if values else worst.subbench


def long_point(worst: PointRatio) -> str:
    """`Elements{io}[pow2]=16, Entropy=0.201`."""
    values = ", ".join(f"{axis}={value}" for axis, value in worst.point.items())
    if worst.subbench == "base" and values:
        return values
    return f"{worst.subbench}: {values}" if values else worst.subbench


def percent(share: float) -> str:
    """`95 %`, `99.9 %`."""
    return f"{share * 100:.4g} %"


def duration(seconds: float) -> str:
    """`12.3 s`, `4 min 05 s`, `2 h 07 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60:,} h {minutes % 60:02} min"
