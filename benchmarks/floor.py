"""The least that any reader with tree-sitter needs: parse each header once, follow no include.

A program of its own, without policygen: `python floor.py FOLDER`.
"""

import sys
from pathlib import Path

import tree_sitter
import tree_sitter_cpp


def main(folder: str) -> None:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
    for path in sorted(Path(folder).glob("*.cuh")):
        parser.parse(path.read_bytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
