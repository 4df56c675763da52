"""The whole loop on an embedded example: each step is a command."""

from collections.abc import Iterator
from pathlib import Path

from policygen import trees
from policygen.demo.database import GPU, demo_database
from policygen.errors import InputError
from policygen.outputs import SQLITE
from policygen.trees.fetched import current_tree as current
from policygen.trees.manifest import shipped

ARCH = "sm90"


def demo_steps(cub: str | None, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each step with its title; what it needs is there when it is asked for."""
    tree_option = [] if cub is None else ["--cub", cub]
    written = tree_option
    if cub is None:
        version = current(trees.headers_folder(Path.cwd()))
        if version is None:
            version = shipped().default
            yield "Obtain a CUB", ["headers", "fetch", version]
        # A checkout around the current folder would be found first.
        used = trees.find_any(None, Path.cwd())
        if used is None or used.found != "cub_headers":
            tree_option = ["--cub", version]
        written = ["--cub", version]  # what is merely found is not written to
    database = folder / "run.db"
    write_database(database)
    given = ["--db", str(database), "--arch", ARCH, *tree_option]
    store = ["--store", str(folder / "policygen.db")]
    plan = folder / "plan.json"
    yield (
        "What was measured (here it is made up), and which variants are worth it?",
        ["db", "choose", "-q", str(database)],
    )
    yield "What would change, and why? (The scores are made up)", ["plan", *given, "-o", str(plan)]
    yield (
        "Write it: the compiler proves first what it does",
        ["apply", "--plan", str(plan), *written, *store],
    )
    yield "Prove it again, workload by workload", ["verify-effect", "-v", *tree_option, *store]
    sass = ["verify-sass", "--arch", "sm100", "-a", "T=I8", "-a", "OffsetT=I32"]
    yield "Is the machine code for a later GPU what it was?", [*sass, *tree_option, *store]
    yield "Take it back, byte for byte", ["undo", *store]


def _is_demo(data: bytes) -> bool:
    """Whether a file is a demo's database: it names a GPU that nobody has."""
    return not data or (data.startswith(SQLITE) and GPU.encode() in data)


def write_database(path: Path) -> None:
    """The demo database, made anew."""
    if path.exists() and not (path.is_file() and _is_demo(path.read_bytes())):
        raise InputError(
            f"{path}: exists already, and is no database of the demo",
            "Name another folder: --folder FOLDER",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    demo_database(path)
