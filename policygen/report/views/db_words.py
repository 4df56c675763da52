"""What the views of tuning databases have in common: headings, notes, numbers."""

from collections.abc import Mapping

from policygen.model.results import Interval, PointRatio, RunKey
from policygen.report.blocks import Beside, Block, Note, Words

DOT = " · "
NOTHING = Note("no workload has a base to compare with")


CALLED = {"rocprim": "rocPRIM"}


def workload_name(algorithm: str, workload: Mapping[str, str]) -> list[str]:
    """Name `cub.bench.reduce.sum[T{ct}=I32, OffsetT{ct}=I32]` in parts that `, ` joins."""
    if not workload:
        return [algorithm]
    *parts, last = (f"{axis}={value}" for axis, value in workload.items())
    first, *others = [*parts, f"{last}]"]
    return [f"{algorithm}[{first}", *others]


def key_parts(key: RunKey, database: str | None) -> list[str]:
    """Name where it was measured, in parts."""
    # NVBench's results name neither toolkit nor CCCL.
    return [key.gpu, *versions_of(key.ctk, key.cccl), *([database] if database else [])]


def versions_of(ctk: str, cccl: str) -> list[str]:
    """Name what is known of toolkit and library; `rocprim@` is a library of unknown version."""
    other, sign, version = cccl.partition("@")
    library = f"{CALLED.get(other, other)} {version}" if sign else f"cccl {cccl}"
    known = (f"ctk {ctk}", ctk), (library, version if sign else cccl)
    return [text for text, said in known if said]


def heading(name: list[str], where: list[str]) -> Block:
    """Head what was measured, and where, on one line or on as many as it takes."""
    left = Words(name, "bold", later="    ", joint=", ", even=True)
    return Beside(left, Words(where, "dim", "  ", "  ", DOT, even=True))


def prose(text: str, indent: str = "", style: str = "") -> Block:
    """Set words, all lines indented alike."""
    return Words(text.split(), style, indent, indent, even=True)


def note(text: str) -> Block:
    """Set a remark below the results."""
    return Words(text.split(), "dim", even=True)


def approximate() -> Block:
    """Say why scores are approximate."""
    return note(
        "approximate: the declared values of the {io} axes are not known, weights come from the"
        " values present; give the benchmark's source with --bench"
    )


def span(interval: Interval | None) -> str:
    """Write both ends with a dash between them."""
    return f"{interval.low:.3f}\N{EN DASH}{interval.high:.3f}" if interval else ""


def short_point(worst: PointRatio) -> str:
    """Write `16/0.201`; a sub-benchmark other than `base` goes before it."""
    return _point(worst, "/".join(worst.point.values()), ":")


def long_point(worst: PointRatio) -> str:
    """Write `Elements{io}[pow2]=16, Entropy=0.201`."""
    return _point(worst, ", ".join(f"{axis}={value}" for axis, value in worst.point.items()), ": ")


def _point(worst: PointRatio, values: str, joint: str) -> str:
    if worst.subbench == "base" and values:
        return values
    return f"{worst.subbench}{joint}{values}" if values else worst.subbench


def percent(share: float) -> str:
    """Write `95 %`, `99.9 %`."""
    return f"{share * 100:.4g} %"


def duration(seconds: float) -> str:
    """Write `12.3 s`, `4 min 05 s`, `2 h 07 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60:,} h {minutes % 60:02} min"
