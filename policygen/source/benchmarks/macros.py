"""`#define`: values for conditions, and function-like macros that register benchmarks."""

import re
from dataclasses import dataclass

# BENCHMARK_UNARY(func) NVBENCH_BENCH_TYPES(func##_bench, ...)
_DEFINE = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\((?P<parameters>[^()]*)\))?(?P<body>.*)", re.DOTALL
)
# "tile_" #name, func ## _bench
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|\s*##\s*|#\s*\w+|\w+|\s+|.', re.DOTALL)
_BRACKET = re.compile(r"[(){}\[\],]")
REGISTERS = "NVBENCH_BENCH"
MAX_BODY = 20_000


@dataclass(frozen=True, slots=True)
class Macro:
    """`parameters` is None for an object-like macro."""

    name: str
    parameters: tuple[str, ...] | None
    body: str

    @property
    def registers(self) -> bool:
        """Whether a call of it registers a benchmark."""
        return self.parameters is not None and REGISTERS in self.body


def parse_macro(text: str) -> Macro | None:
    """What follows `#define`."""
    match = _DEFINE.match(text)
    if match is None or len(text) > MAX_BODY:
        return None
    given = match["parameters"]
    parameters = None if given is None else tuple(p.strip() for p in given.split(","))
    return Macro(match["name"], parameters, match["body"].strip())


def expand(macro: Macro, data: str, mask: str, opening: int) -> tuple[str, int]:
    """The macro's body for the call whose bracket is at `opening`, and where the call ends."""
    arguments: list[str] = []
    depth, at = 0, opening + 1
    for match in _BRACKET.finditer(mask, opening):
        sign = match.group()
        if sign != ",":
            depth += 1 if sign in "({[" else -1
        if depth == 0 or (sign == "," and depth == 1):
            arguments.append(data[at : match.start()].strip())
            at = match.end()
        if depth == 0:
            return _substitute(macro, arguments), match.end()
    return "", -1


def _substitute(macro: Macro, arguments: list[str]) -> str:
    padded = arguments + [""] * len(macro.parameters or ())
    values = dict(zip(macro.parameters or (), padded, strict=False))
    parts: list[str] = []
    for part in _PART.findall(macro.body):
        if "##" in part and part.strip() == "##":
            continue
        if part.startswith("#"):
            name = part[1:].strip()
            parts.append(_quoted(values.get(name, name)))
        else:
            parts.append(values.get(part, part))
    return "".join(parts)


def _quoted(text: str) -> str:
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
