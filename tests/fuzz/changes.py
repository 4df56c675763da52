"""Changes headers of CUB at random; a review that says "as before" is held against machine code.

Half of the changes are in tuning headers: of others, a review says little without `--run-sass`.

    python -m tests.fuzz.changes --count 20 --seed 1

The judge knows nothing of policygen: sixty calls that no benchmark has, compiled before and after.
"""

import io
import json
import random
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from policygen.cli.main import main
from policygen.proof.toolchain import find_toolchain
from tests.fuzz import command
from tests.fuzz.public_calls import CALLS, unit
from tests.real_trees import tree

VERSIONS = ("3.0.1", "3.6.0")
INTERNAL = r"\d*_(?:INTERNAL|GLOBAL__N)_\w+?_cu_[0-9a-f]{8}(?:_\d+)?"
"""Names with a digest of the file, and with the number of the process."""
AS_BEFORE = "as before"
ARCHS = ("sm_80", "sm_90", "sm_100")
SWAPPED = {
    "==": "!=",
    "!=": "==",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "&&": "||",
    "||": "&&",
}
ENUMERATORS = (
    ("BLOCK_LOAD_DIRECT", "BLOCK_LOAD_TRANSPOSE", "BLOCK_LOAD_WARP_TRANSPOSE"),
    ("LOAD_DEFAULT", "LOAD_CA", "LOAD_LDG"),
    ("BLOCK_SCAN_WARP_SCANS", "BLOCK_SCAN_RAKING", "BLOCK_SCAN_RAKING_MEMOIZE"),
)
OTHERS = {name: [n for n in group if n != name] for group in ENUMERATORS for name in group}
NUMBER = r"""(?<![\w."<])\d+(?![\w."'])"""
EDITS = {
    "constant": (NUMBER, lambda text, rng: str(max(0, int(text) + rng.choice((-1, 1, 32))))),
    "condition": (r" (?:==|!=|<=|>=|<|>|&&|\|\|) ", lambda text, _: f" {SWAPPED[text.strip()]} "),
    "sizeof": (r"\bsizeof\b", lambda *_: "alignof"),
    "member": (rf"\b(?:{'|'.join(OTHERS)})\b", lambda text, rng: rng.choice(OTHERS[text])),
    "include": (r"^#include <cub/.*>$", lambda *_: ""),
}  # fmt: skip


@dataclass(eq=False)
class Judge:
    """A tree of CUB, a copy of it that is changed, and the code of calls."""

    version: str
    folder: Path
    nvcc: Path = field(default_factory=lambda: find_toolchain().nvcc)
    codes: dict[tuple[str, str], str | None] = field(default_factory=dict)
    reads: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """The files that an algorithm's calls read: others do not change their code."""

    def __post_init__(self):
        self.before = tree(self.version)
        self.after = self.folder / self.version
        shutil.copytree(self.before, self.after)

    def compiled(self, name, arch, root):
        """The code of an algorithm's calls; None if they do not compile."""
        with tempfile.NamedTemporaryFile("r", suffix=".ptx") as output:  # nvcc hangs on a pipe
            command = [self.nvcc, f"-arch={arch}", "-ptx", "-w", "-DNDEBUG", "-I", root]
            command += [f"{name}.cu", "-o", output.name]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, check=False)
            return None if done.returncode else re.sub(INTERNAL, "", output.read())

    def differs(self, arch, header):
        """Which calls have other code if a header changed; None if some do not compile."""
        with ThreadPoolExecutor(2) as pool:
            before = list(pool.map(lambda name: self._before(name, arch), CALLS))
            after = list(pool.map(lambda name: self._after(name, arch, str(header)), CALLS))
        pairs = list(zip(CALLS, before, after, strict=True))
        if any(new is None for _, _, new in pairs):
            return None
        return [name for name, old, new in pairs if old != new]

    def _before(self, name, arch):
        key = name, arch
        if key not in self.codes:
            command = [self.nvcc, f"-arch={arch}", "-M", "-I", self.before, f"{name}.cu"]
            rules = subprocess.run(command, cwd=self.folder, capture_output=True, check=True).stdout
            self.reads[key] = rules.decode().split()
            self.codes[key] = self.compiled(name, arch, self.before)
        return self.codes[key]

    def _after(self, name, arch, header):
        if any(path.endswith(header) for path in self.reads[name, arch]):
            return self.compiled(name, arch, self.after)
        return self.codes[name, arch]

    def reviewed(self):
        """What a review says: `refused`, `not judged`, `changes`, `as before`, or WRONG."""
        given = ["review", "--cub", self.after, "--base", self.before, "--format", "json", "-q"]
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(io.StringIO()) as messages:
            status = main(list(map(str, given)))
        if status == 2:
            return "refused"
        if not out.getvalue():
            return f"WRONG, status {status} without a review: {messages.getvalue()}"
        review = json.loads(out.getvalue())
        if review["changed"] or any(review[row] for row in ("entries", "others", "inputs")):
            return "changes"
        return "not judged" if status or review["uncovered"] else AS_BEFORE


def changed(text, rng):
    """A text with one change, and its description; None if nothing in it can be changed so."""
    kind = rng.choice(list(EDITS))
    pattern, replace = EDITS[kind]
    lines = text.splitlines()
    places = [
        (number, match)
        for number, line in enumerate(lines)
        if not line.lstrip().startswith(("//", "*", "/*", "#" if kind != "include" else "//"))
        for match in re.finditer(pattern, line)
    ]
    if not places:
        return None
    number, match = rng.choice(places)
    new = replace(match[0], rng)
    line = lines[number]
    lines[number] = line[: match.start()] + new + line[match.end() :]
    return "\n".join(
        lines
    ) + "\n", f"{number + 1}: {kind}: {line.strip()} → {lines[number].strip()}"


def attempt(judge, rng):
    """How a review of one change ends."""
    paths = [
        p for place in ("device", "agent") for p in (judge.before / "cub" / place).rglob("*.cuh")
    ]
    tunings = [p for p in paths if p.parent.name == "tuning"]
    while True:
        path = rng.choice(sorted(rng.choice([paths, tunings]))).relative_to(judge.before)
        made = changed((judge.before / path).read_text(), rng)
        if made is not None and made[0] != (judge.before / path).read_text():
            break
    text, what = made
    place = f"{judge.version} {path}:{what}"
    (judge.after / path).write_text(text)
    try:
        said = judge.reviewed()
        if said.startswith("WRONG"):
            return f"{said} {place}"
        if said != AS_BEFORE:
            return said
        differing = judge.differs(rng.choice(ARCHS), path)
    finally:
        shutil.copyfile(judge.before / path, judge.after / path)
    if differing is None:
        return f"WRONG, as before and does not compile: {place}"
    if differing:
        return f"WRONG, as before and differs in {', '.join(differing)}: {place}"
    return f"{AS_BEFORE}, and the machine code of all calls is equal"


def run(count, seed):
    """Counts how reviews of changes end."""
    rng, found = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in CALLS:
            (Path(folder) / f"{name}.cu").write_text(unit(name))
        judges = [Judge(version, Path(folder)) for version in VERSIONS]
        for number in range(count):
            found[attempt(judges[number % len(judges)], rng)] += 1
    return found


if __name__ == "__main__":
    command.main(run, __doc__, 20)
