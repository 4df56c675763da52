"""Command groups; commands are imported on demand, so that help is fast."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from policygen import __version__
from policygen.cli.completing import completed


class LazyGroup(click.Group):
    """Group with the summaries of its commands, keyed by `name` or `module:name`."""

    def __init__(self, name: str, text: str, commands: Mapping[str, str]) -> None:
        # click would strip escape sequences silently; here they are made visible.
        context = {"help_option_names": ["-h", "--help"], "color": True}
        super().__init__(name, help=text, context_settings=context)
        self.known = {key.rpartition(":")[2]: text for key, text in commands.items()}
        self.modules = {key.rpartition(":")[2]: key.partition(":")[0] for key in commands}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all command names."""
        return sorted({*super().list_commands(ctx), *self.known})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command from its module."""
        if cmd_name not in self.commands and cmd_name in self.known:
            module = import_module(f"policygen.cli.{self.modules[cmd_name].replace('-', '_')}")
            for member in vars(module).values():
                if isinstance(member, click.Command) and member.name in self.known:
                    completed(member)
                    self.add_command(member)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a command for an unknown name."""
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            self.suggest(ctx, args[0], "No such command")
        return super().resolve_command(ctx, args)

    def suggest(self, ctx: click.Context, name: str, problem: str) -> None:
        """Fail with the commands that have a similar name, if there are any."""
        if similar := get_close_matches(name, self.list_commands(ctx)):
            ctx.fail(f"{problem} {name!r}. (Did you mean {' or '.join(map(repr, similar))}?)")

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; for an option without its argument, say what the argument is."""
        try:
            return super().invoke(ctx)
        except click.BadOptionUsage as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if error.ctx is not None or command is None:
                raise
            raise _with_argument(error, click.Context(command, ctx, command.name)) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names and options without importing the commands."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self._short(name, 100)) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._short(name, limit)) for name in names])

    def _short(self, name: str, limit: int) -> str:
        command = self.commands.get(name) or click.Command(name, help=self.known[name])
        return command.get_short_help_str(limit)


def _with_argument(error: click.BadOptionUsage, ctx: click.Context) -> click.BadOptionUsage:
    options = [option for option in ctx.command.params if isinstance(option, click.Option)]
    message = error.message
    for option in options:
        if error.option_name in option.opts and not option.is_flag:
            message = f"{message.rstrip('.')}: {option.make_metavar(ctx)}\n  {option.help}"
    return click.BadOptionUsage(error.option_name, message, ctx)


class DefaultGroup(LazyGroup):
    """Group with a default command."""

    def __init__(self, name: str, text: str, commands: Mapping[str, str], default: str) -> None:
        super().__init__(name, text, commands)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command's name, unless a shell is completing this position."""
        is_named = args[:1] in [[name] for name in (*self.known, *self.get_help_option_names(ctx))]
        if not is_named and (args or not ctx.resilient_parsing):
            if args and not ctx.resilient_parsing and not Path(args[0]).exists():
                self.suggest(ctx, args[0], "No such command or path")
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names, and the arguments of the default command."""
        command = self.get_command(ctx, self.default)
        assert command is not None
        subcontext = command.make_context(self.default, [], parent=ctx, resilient_parsing=True)
        words = not incomplete.startswith("-")
        arguments = [
            parameter
            for parameter in command.params
            if words and isinstance(parameter, click.Argument)
        ]
        items = [
            item
            for parameter in arguments
            for item in parameter.shell_complete(subcontext, incomplete)
        ]
        options = command.shell_complete(subcontext, incomplete)
        # Bash ignores items that precede a file.
        return [*items, *super().shell_complete(ctx, incomplete), *options]


BENCH = DefaultGroup(
    "bench",
    """Shows what benchmarks offer to tune, and writes new ones.

    Without the name of a command it lists: policygen bench PATH. A folder that is called as one
    is ./list, or ./new.
    """,
    {
        "bench:list": "The parameters, variants and workloads of benchmarks.",
        "bench:new": "Writes a benchmark of your own for a CCCL checkout, and a binding of it.",
    },
    "list",
)
HEADERS = LazyGroup(
    "headers",
    "Shows and obtains trees of CUB and rocPRIM.",
    {
        "trees:fetch": "Gets trees of CUB from PyPI and of rocPRIM (rocprim@5.7.1) from"
        " Debian's packages.",
        "trees:list": "Lists the trees that can be had, and names the one that is used here.",
        "trees:path": "Prints the include folder of the tree that is used here, or of a fetched"
        " VERSION.",
    },
)
AUDIT = LazyGroup(
    "audit",
    "Checks the tunings of a tree.",
    {
        "audit:coverage": "Shows which workloads are tuned for which architectures, by asking the"
        " compiler.",
        "audit:lint": "Checks the values of tuning entries against what their algorithm can use.",
        "audit:reach": "Finds entries that no workload can ever select, by asking the compiler.",
    },
)
DB = LazyGroup(
    "db",
    """Reads tuning databases, scores variants, chooses among them.

    DB is a cccl_meta_bench.db of any CCCL, or a glob of them; top, choose, coverage, compare and
    plot take NVBench's JSON results too. What a file is, is told by its content. Databases are
    opened for reading only.
    """,
    {
        "db:choose": "Chooses one variant per workload, or base, and says why not the others.",
        "db:compare": "Compares two GPUs or two searches: order, noise, choices, and how"
        " winners do elsewhere.",
        "db:coverage": "Shows how much of the search space was measured, workload by workload.",
        "db:export": "Writes all rows as one flat table, CSV or Parquet.",
        "db:import": "Writes results of Kernel Tuner, T4 results, or rocPRIM's results, as a"
        " database.",
        "db:info": "Shows algorithms, workloads, GPUs, versions, rows, failures and the time"
        " spent.",
        "db:merge": "Merges databases into one that CCCL's own scripts read; conflicts are"
        " reported.",
        "db:plot": "Plots one workload: ratio to base by quantile per runtime workload, or a"
        " map of scores.",
        "db:matrix": "Compares strategies of a kernel of one's own: who is fastest at which"
        " size, and why.",
        "db:report": "Tells what a search found for each workload, how sure that is, and how"
        " it got there.",
        "db:top": "Ranks the variants of each workload, with intervals, verdicts and the worst"
        " workload.",
    },
)
COMMANDS = LazyGroup(
    "policygen",
    "Turns GPU tuning results into CUB's tuning policies, and proves the change.",
    {
        "apply:apply": "Writes tunings from databases, or from a plan, into the headers of a tree.",
        "completion": "Prints a script that lets bash, zsh or fish complete commands, options and"
        " values.",
        "demo": "Shows on a real CUB what policygen does: from a tuning database to a proven"
        " change.",
        "trees:doctor": "Shows what policygen works with on this machine, and the command that"
        " mends"
        " what is missing.",
        "emit": "Writes policy selectors for CUB's public API into a header of your own; CUB stays"
        " as it is.",
        "measure": "Measures variants beside base on a GPU of this machine, and checks what they"
        " compute.",
        "apply:plan": "Shows what results would change in a tree, and why; writes nothing to it.",
        "trees:resolve": "Shows which values CUB selects for each workload, and which entry they"
        " come"
        " from.",
        "review": "Shows what a change of tuning headers means, made by policygen or by hand.",
        "trees:scan": "Shows every tuning family and entry of a tree.",
        "search": "Finds the best variants of workloads on a GPU of this machine.",
        "trees:status": "Shows where a tree stands: what was applied, what is open, what was"
        " proved, what"
        " to do next.",
        "tune": "Finds faster policies for workloads on this GPU, and writes a header that gives"
        " them to CUB.",
        "apply:undo": "Takes the last apply back, or the last N in one go; every byte is as it was"
        " before.",
        "apply:verify-effect": "Shows that the last apply has its effect: what was written is"
        " selected,"
        " nothing else changed.",
        "verify-performance": "Measures a change as it is merged: what is faster on this GPU, and"
        " that nothing is slower.",
        "verify-sass": "Shows whether anything else changed: compares the machine code of kernels.",
    },
)
for group in (AUDIT, BENCH, DB, HEADERS):
    COMMANDS.add_command(group)
click.version_option(__version__, prog_name="policygen")(COMMANDS)
