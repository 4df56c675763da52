import os
import sys

# `python -m` looks into the current folder first, and what is there is not ours: unless we are.
if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):  # noqa: PTH120  pathlib might be the folder's
    del sys.path[0]

from policygen.cli.main import run

run()
