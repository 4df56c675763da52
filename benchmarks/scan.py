"""Reading tuning headers, against what tree-sitter alone needs for them."""

import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Commands, run

VERSION = "3.6.0"
FLOOR = Path(__file__).with_name("floor.py")


def commands(root: Path, work: Path) -> Commands:
    """Scans of the whole tree and of one header."""
    policygen = [sys.executable, "-m", "policygen"]
    scan = [*policygen, "scan", "--json", "--cub", str(root)]
    tuning = root / "cub/device/dispatch/tuning"
    floor = [sys.executable, str(FLOOR), str(tuning)]
    return {
        f"floor: tree-sitter parses the headers of {VERSION}": (lambda: run(floor, work), None),
        f"policygen scan --json, {VERSION}, cold": (lambda: run(scan, fresh(work)), 1.0),
        f"policygen scan --json, {VERSION}, warm": (lambda: run(scan, work / "warm"), 0.4),
        "policygen scan --json, one header, cold": (lambda: run([*scan, "scan"], fresh(work)), 0.3),
        "policygen --help": (lambda: run([*policygen, "--help"], work), 0.25),
        "python -c pass": (lambda: run([sys.executable, "-c", "pass"], work), None),
    }


def fresh(work: Path) -> Path:
    """A cache folder that nothing was written to."""
    return Path(tempfile.mkdtemp(dir=work))
