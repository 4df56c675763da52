"""Shell completion of option values, selected by metavar, without importing other commands."""

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
"""Environment variable set by the shell script, such as `bash_complete`."""

SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}


class Completed(StringParamType):
    """Text that a shell can complete: one of several words, or a file or folder."""

    def __init__(self, find: Find | None = None, kind: str = "plain") -> None:
        self.find, self.kind = find, kind

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  as click calls it
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return words with the typed prefix; the shell completes files itself."""
        if self.find is None:
            return [CompletionItem(incomplete, type=self.kind)]
        # In a comma-separated list, only the last item is completed.
        begin, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(f"{begin}{comma}{word}") for word in self.find() if word.startswith(last)
        ]


def archs() -> Iterator[str]:
    """List known architectures."""
    table = tomllib.loads((rendering.folder("schemas") / "archs.toml").read_text("utf-8"))
    return (arch["name"] for arch in table["arch"])


def benchmarks() -> Iterator[str]:
    """List benchmarks with a binding."""
    names = set()
    for path in (rendering.folder("schemas") / "bindings").glob("*.toml"):
        binding = tomllib.loads(path.read_text("utf-8"))
        names |= {
            benchmark["name"] for benchmark in binding.get("benchmark", ()) if "name" in benchmark
        }
    return iter(sorted(names))


def algorithms() -> Iterator[str]:
    """List algorithms with a binding."""
    paths = (rendering.folder("schemas") / "bindings").glob("*.toml")
    return iter(sorted(path.stem for path in paths if path.stem != "types"))


def versions() -> Iterator[str]:
    """List releases that can be fetched."""
    path = rendering.folder("cub_headers") / "manifest.toml"
    manifest = tomllib.loads(path.read_text("utf-8"))
    yield from (wheel["cub"] for wheel in manifest["wheels"])
    for release in manifest["releases"]:
        yield manifest["libraries"][release["library"]]["fetched"]["name"] + release["release"]


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
"""Maps metavars to their completion."""


def completed(command: click.Command) -> None:
    """Set the completion of a command's parameters by their metavars."""
    for param in command.params:
        kind = KINDS.get(param.metavar or "")
        if kind is not None and type(param.type) is StringParamType:
            param.type = kind


def script(group: click.Command, shell: str) -> str:
    """Return the script for a shell; unlike click, do not start the shell for its version."""
    completion = SHELLS[shell](group, {}, PROGRAM, VARIABLE)
    return completion.source_template % completion.source_vars()


def answer(group: click.Command, instruction: str) -> int:
    """Respond to the completion request of a shell."""
    shell, _, action = instruction.partition("_")
    if shell not in SHELLS or action not in ("complete", "source"):
        return 2
    if action == "source":
        click.echo(script(group, shell), nl=False)
    else:
        click.echo(SHELLS[shell](group, {}, PROGRAM, VARIABLE).complete())
    return 0


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print a completion script for a shell.

    In bash or zsh: eval "$(policygen completion bash)"; in fish: policygen completion fish |
    source. Put the line into the shell's start file to keep it.
    """
    click.echo(script(context.find_root().command, shell), nl=False)
    return 0
