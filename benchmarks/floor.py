"""The least that any reader with libclang needs: parse each header once, follow no include.

A program of its own, without policygen: `python floor.py FOLDER PRELUDE`.
"""

import re
import sys
from pathlib import Path

import clang.cindex as ci


def main(folder: str, prelude: str) -> None:
    names = Path(prelude).read_bytes()
    for path in sorted(Path(folder).glob("*.cuh")):
        data = re.sub(
            rb"(?m)^[ \t]*#[ \t]*include.*", lambda m: b" " * len(m[0]), path.read_bytes()
        )
        arguments = [
            "-x",
            "c++",
            "-std=c++17",
            "-nostdinc",
            "-nostdinc++",
            "-w",
            "-include",
            "/p.h",
        ]
        files = [("/h.cuh", data), ("/p.h", names)]
        skip = ci.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
        ci.Index.create().parse("/h.cuh", arguments, files, skip)


if __name__ == "__main__":
    main(*sys.argv[1:])
