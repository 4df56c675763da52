"""The whole workflow on an embedded example; each step is a command."""

from collections.abc import Iterator
from pathlib import Path

from policygen import trees
from policygen.demo.database import GPU, demo_database
from policygen.errors import InputError
from policygen.opening import SQLITE
from policygen.trees.fetched import current_tree as current
from policygen.trees.manifest import shipped

ARCH = "sm90"


def demo_steps(cub: str | None, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yields each step with its title. The inputs of a step exist when it is requested."""
    tree_option = [] if cub is None else ["--cub", cub]
    write_options = tree_option
    if cub is None:
        version = current(trees.headers_folder(Path.cwd()))
        if version is None:
            version = shipped().default
            yield "Fetch a CUB", ["headers", "fetch", version]
        # A checkout around the current folder would take precedence.
        used = trees.find_any(None, Path.cwd())
        if used is None or used.found != "cub_headers":
            tree_option = ["--cub", version]
        write_options = ["--cub", version]  # trees that were only found are not written to
    database = folder / "run.db"
    write_database(database)
    inputs = ["--db", str(database), "--arch", ARCH, *tree_option]
    store = ["--store", str(folder / "policygen.db")]
    plan = folder / "plan.json"
    yield (
        "Which variants are worth it? (These measurements are invented.)",
        ["db", "choose", "-q", str(database)],
    )
    yield (
        "What would change, and why? (The scores are invented.)",
        ["plan", *inputs, "-o", str(plan)],
    )
    yield (
        "Write the change; the compiler first proves what it does",
        ["apply", "--plan", str(plan), *write_options, *store],
    )
    yield "Prove it again, workload by workload", ["verify-effect", "-v", *tree_option, *store]
    sass = ["verify-sass", "--arch", "sm100", "-a", "T=I8", "-a", "OffsetT=I32"]
    yield "Is the machine code for a later GPU unchanged?", [*sass, *tree_option, *store]
    yield "Undo it, byte for byte", ["undo", *store]


def write_database(path: Path) -> None:
    """Creates a new demo database."""
    data = path.read_bytes() if path.is_file() else b""
    # A database of the demo names a GPU that does not exist.
    is_demo = path.is_file() and (not data or (data.startswith(SQLITE) and GPU.encode() in data))
    if path.exists() and not is_demo:
        raise InputError(
            f"{path}: exists already, and is not a database of the demo",
            "Name another folder: --folder FOLDER",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    demo_database(path)
