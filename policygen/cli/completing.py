"""What a shell offers for a value, by what the value is called in the help; nothing is loaded."""

import tomllib
from collections.abc import Callable, Iterator

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)
from click.types import StringParamType

from policygen import rendering

Find = Callable[[], Iterator[str]]
PROGRAM = "policygen"
VARIABLE = "_POLICYGEN_COMPLETE"
"""Set by the script in the shell: `bash_complete`."""

SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}


class Completed(StringParamType):
    """A text of which a shell knows how it may go on: one of some words, or a file or folder."""

    def __init__(self, find: Find | None = None, kind: str = "plain") -> None:
        self.find, self.kind = find, kind

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  as click calls it
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The words that begin with what was typed; files the shell finds itself."""
        if self.find is None:
            return [CompletionItem(incomplete, type=self.kind)]
        # A list with commas goes on behind the last one.
        begin, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(f"{begin}{comma}{word}") for word in self.find() if word.startswith(last)
        ]


def archs() -> Iterator[str]:
    """The architectures that are known."""
    known = tomllib.loads((rendering.folder("schemas") / "archs.toml").read_text("utf-8"))
    return (one["name"] for one in known["arch"])


def benchmarks() -> Iterator[str]:
    """The benchmarks that are bound."""
    found = set()
    for path in (rendering.folder("schemas") / "bindings").glob("*.toml"):
        bound = tomllib.loads(path.read_text("utf-8"))
        found |= {one["name"] for one in bound.get("benchmark", ()) if "name" in one}
    return iter(sorted(found))


def algorithms() -> Iterator[str]:
    """The algorithms that are bound."""
    paths = (rendering.folder("schemas") / "bindings").glob("*.toml")
    return iter(sorted(path.stem for path in paths if path.stem != "types"))


def versions() -> Iterator[str]:
    """The releases that can be fetched."""
    path = rendering.folder("cub_headers") / "manifest.toml"
    known = tomllib.loads(path.read_text("utf-8"))
    yield from (wheel["cub"] for wheel in known["wheels"])
    for one in known["releases"]:
        yield known["libraries"][one["library"]]["fetched"]["name"] + one["release"]


FILES, FOLDERS = Completed(kind="file"), Completed(kind="dir")
KINDS = {
    **dict.fromkeys(("FILE", "FILE...", "PATH", "DB", "DB...", "TREE", "JSON"), FILES),
    "DIR": FOLDERS,
    "ARCH": Completed(archs),
    "REGEX": Completed(benchmarks),
    "[HEADER]...": Completed(algorithms),
    "VERSION...": Completed(versions),
    "[VERSION]": Completed(versions),
}
"""What values are called → how they are completed."""


def completed(command: click.Command) -> None:
    """Tells the parameters of a command how their values are completed."""
    for param in command.params:
        kind = KINDS.get(param.metavar or "")
        if kind is not None and type(param.type) is StringParamType:
            param.type = kind


def script(group: click.Command, shell: str) -> str:
    """The script for a shell; click's own way to it starts the shell to ask for its version."""
    made = SHELLS[shell](group, {}, PROGRAM, VARIABLE)
    return made.source_template % made.source_vars()


def answer(group: click.Command, asked: str) -> int:
    """Tells a shell how the line goes on that its variables hold."""
    shell, _, what = asked.partition("_")
    if shell not in SHELLS or what not in ("complete", "source"):
        return 2
    if what == "source":
        click.echo(script(group, shell), nl=False)
    else:
        click.echo(SHELLS[shell](group, {}, PROGRAM, VARIABLE).complete())
    return 0
