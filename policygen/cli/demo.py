"""`policygen demo`: the whole loop on an embedded example, each step a command to repeat."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from policygen.cli.options import cub_option

FOLDER = "policygen-demo"
ARCH = "sm90"


@click.command()
@cub_option
@click.option("--folder", default=FOLDER, show_default=True, help="Where the demo keeps its files.")
@click.pass_context
def demo(context: click.Context, cub: str | None, folder: str) -> int:
    """Shows on a real CUB what policygen does: from a tuning database to a proven change.

    Obtains a CUB when there is none, plans and applies what a made-up database says, proves it,
    and takes it back: the tree is as it was.
    """
    commands = context.find_root().command
    for step, (title, arguments) in enumerate(_steps(cub, Path(folder)), start=1):
        line = shlex.join(arguments)
        click.echo(f"{'' if step == 1 else chr(10)}{step}. {title}\n$ policygen {line}")
        sys.stdout.flush()
        if status := commands.main(args=arguments, prog_name="policygen", standalone_mode=False):
            return int(status)
    return 0


def _steps(cub: str | None, folder: Path) -> Iterator[tuple[str, list[str]]]:
    from policygen import tree
    from policygen.tree.manifest import shipped
    from policygen.tree.store import current

    tree_option = [] if cub is None else ["--cub", cub]
    if cub is None:
        version = current(tree.headers_folder(Path.cwd()))
        if version is None:
            version = shipped().default
            yield "Obtain a CUB", ["headers", "fetch", version]
        # A checkout around the current folder would be found first.
        used = tree.find_any(None, Path.cwd())
        if used is None or used.found != "cub_headers":
            tree_option = ["--cub", version]
    database = folder / "run.db"
    write_database(database)
    given = ["--db", str(database), "--arch", ARCH, *tree_option]
    store = ["--store", str(folder / "policygen.db")]
    plan = folder / "plan.json"
    yield (
        "What was measured, and which variants are worth it?",
        ["db", "choose", "-q", str(database)],
    )
    yield "What would change, and why?", ["plan", *given, "-o", str(plan)]
    yield (
        "Write it: the compiler proves first what it does",
        ["apply", "--plan", str(plan), *tree_option, *store],
    )
    yield "Prove it again, workload by workload", ["verify-effect", "-v", *tree_option, *store]
    sass = ["verify-sass", "--arch", "sm100", "-a", "T=I8", "-a", "OffsetT=I32"]
    yield "Is the machine code for a later GPU what it was?", [*sass, *tree_option, *store]
    yield "Take it back, byte for byte", ["undo", *store]


def write_database(path: Path) -> None:
    """The demo database, made anew."""
    from policygen.demo.database import demo_database
    from policygen.errors import InputError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    demo_database(path)
