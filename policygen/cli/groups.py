"""Command groups; commands are imported on demand, so that help is fast."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from policygen import __version__
from policygen.cli.completing import completed


class LazyGroup(click.Group):
    """Group with the summaries of its commands, keyed by `name` or `module:name`.

    `sections` are the titles under which help lists the commands.
    """

    def __init__(
        self,
        name: str,
        text: str,
        commands: Mapping[str, str],
        sections: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        # click would strip escape sequences silently; here they are made visible.
        context = {"help_option_names": ["-h", "--help"], "color": True}
        super().__init__(name, help=text, context_settings=context)
        self.known = {key.rpartition(":")[2]: text for key, text in commands.items()}
        self.sections = sections
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
            context, message = click.Context(command, ctx, command.name), error.message
            options = (param for param in command.params if isinstance(param, click.Option))
            for option in options:
                if error.option_name in option.opts and not option.is_flag:
                    message = f"{message.rstrip('.')}: {option.make_metavar(context)}"
                    message += f"\n  {option.help}"
            raise click.BadOptionUsage(error.option_name, message, context) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names and options without importing the commands."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self._short(name, 100)) for name in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        names = self.list_commands(ctx)
        widest = max(map(len, names))
        for title, section in (self.sections or {"Commands": names}).items():
            with formatter.section(title):
                rows = [
                    (name.ljust(widest), self._short(name, formatter.width)) for name in section
                ]
                formatter.write_dl(rows)

    def _short(self, name: str, limit: int) -> str:
        command = self.commands.get(name) or click.Command(name, help=self.known[name])
        return command.get_short_help_str(limit)


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
    """List what benchmarks can tune, or write new ones.

    `policygen bench PATH` is short for `policygen bench list PATH`. A folder with the name of a
    command is ./list or ./new.
    """,
    {
        "bench:list": "List parameters, variants and workloads of benchmarks.",
        "bench:new": "Write a benchmark for a workload of your own.",
    },
    "list",
)
HEADERS = LazyGroup(
    "headers",
    "Fetch and list trees of CUB and rocPRIM.",
    {
        "trees:fetch": "Fetch trees of CUB from PyPI, or of rocPRIM from Debian.",
        "trees:list": "List trees that can be fetched, and the current one.",
        "trees:path": "Print the include folder of a tree.",
    },
)
AUDIT = LazyGroup(
    "audit",
    "Find untuned workloads, dead entries and bad values.",
    {
        "audit:coverage": "Show which workloads are tuned on which architectures.",
        "audit:lint": "Find implausible values of tuning entries.",
        "audit:reach": "Find tuning entries that nothing selects.",
    },
)
DB = LazyGroup(
    "db",
    """Read, compare and choose from tuning databases.

    DB is a cccl_meta_bench.db of any CCCL version, a glob, or the build folder of a search with one
    in each lane. top, choose, coverage, compare and plot also take NVBench JSON results. Formats
    are detected from the contents. Databases are opened read-only.
    """,
    {
        "db:choose": "Choose one variant per workload, or base, with reasons.",
        "db:compare": "Compare two searches, or two GPUs.",
        "db:coverage": "Show how much of each search space was measured.",
        "db:export": "Export all rows to CSV or Parquet.",
        "db:import": "Import results of Kernel Tuner, T4 files, or rocPRIM.",
        "db:info": "Show what a database contains.",
        "db:matrix": "Compare strategies of your kernel at each size.",
        "db:merge": "Merge databases into one in CCCL's layout.",
        "db:plot": "Plot one workload by quantile, or a map of scores.",
        "db:report": "Report what a search found, and how reliable it is.",
        "db:top": "Rank variants by score, with intervals and verdicts.",
    },
)
COMMANDS = LazyGroup(
    "policygen",
    "Turn GPU tuning results into CUB tuning policies, and prove what they change.",
    {
        "tune": "Find faster policies on this GPU and write a header.",
        "apply:apply": "Write tuning results into CUB's headers, with proof.",
        "review": "Explain a change of tuning headers.",
        "trees:resolve": "Show which policy CUB selects for a workload.",
        "trees:doctor": "Show what this machine has and lacks.",
        "search": "Search for the best variants on a GPU.",
        "search:campaign": "Search many workloads, and give time to those that gain.",
        "measure": "Time given variants against CUB's defaults.",
        "apply:plan": "Show what results would change, and why.",
        "emit": "Write a policy header for programs that use CUB.",
        "overlay": "Write tuned headers to put before CUB, for programs as they are.",
        "overlay:calls": "List the CUB kernels of a program, and whether they are tuned.",
        "apply:undo": "Take back the last apply.",
        "apply:verify-effect": "Check that the last apply selects what it wrote.",
        "verify-sass": "Compare machine code before and after a change.",
        "verify-performance": "Measure a change before and after on a GPU.",
        "trees:status": "Show what was applied, proven and left to do.",
        "trees:scan": "List the tuning entries of a tree.",
        "demo": "See a whole run on a real CUB.",
        "completing:completion": "Print a completion script for a shell.",
    },
    {
        "Most used": ("tune", "apply", "review", "resolve", "doctor"),
        "Find faster tunings": ("search", "campaign", "measure", "db"),
        "Write them": ("plan", "emit", "overlay", "undo"),
        "Prove them": ("verify-effect", "verify-sass", "verify-performance"),
        "Review them": ("audit", "status"),
        "Look around": ("scan", "calls", "bench", "headers", "demo", "completion"),
    },
)
for group in (AUDIT, BENCH, DB, HEADERS):
    COMMANDS.add_command(group)
click.version_option(__version__, prog_name="policygen")(COMMANDS)
