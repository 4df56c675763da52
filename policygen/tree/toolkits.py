"""Where toolkits of a library are installed, as far as this machine tells."""

from pathlib import Path

from policygen.environment import named_folder, which
from policygen.model.cub import Library
from policygen.tree.manifest import shipped


def toolkit_folders(library: Library = "cub") -> tuple[Path, ...]:
    """Those that variables name, that of the program on PATH, the usual ones."""
    known = shipped().libraries[library].toolkits
    named = (named_folder(name) for name in known.variables)
    folders = [folder for folder in named if folder]
    if program := which(known.program):
        # TOOLKIT/bin/nvcc, often behind a link in a common folder.
        folders.append(Path(program).resolve().parent.parent)
    return tuple(dict.fromkeys((*folders, *usual_folders(library))))


def usual_folders(library: Library) -> tuple[Path, ...]:
    """Where installers put a toolkit."""
    return tuple(map(Path, shipped().libraries[library].toolkits.folders))
