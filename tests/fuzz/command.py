"""How a fuzzer is run for as long as one likes: `--count N --seed S`; it prints what it counted."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable


def main(run: Callable[[int, int], Counter[str]], about: str | None, count: int) -> None:
    """Runs a fuzzer with the numbers of the command line."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name, number in sorted(run(given.count, given.seed).items()):
        sys.stdout.write(f"{number:6,} {name}\n")
