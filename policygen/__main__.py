import os
import sys

# `python -m` puts the current folder on the path first; drop it unless it contains policygen.
if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):  # noqa: PTH120  pathlib might be the folder's
    del sys.path[0]

from policygen.cli.main import run

run()
