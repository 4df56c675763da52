"""Options shared by commands, with CCCL's meaning where CCCL has them."""

import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, cast

import click
from click.core import ParameterSource

from policygen import settings
from policygen.app.filters import Filter, typed_archs
from policygen.app.inputs import ResultFiles, Rules, parse_gpus
from policygen.app.session import LIBRARIES, STORE, Library, Session, open_session, own_store
from policygen.cli.output import Out, Output
from policygen.cli.progress import compile_progress, warn

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
RULES = Rules()
EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class Option(Protocol):
    """A decorator that adds options to a command."""

    def __call__(self, command: Command, /) -> Command:
        """Return the command with the options."""


def option(name: str, metavar: str, text: str, *, to: str | None = None, **more: Any) -> Option:
    """An option with a value, which `metavar` names in the help; `to` is its parameter."""
    return click.option(name, *filter(None, [to]), metavar=metavar, help=text, **more)


def repeated(name: str, metavar: str, text: str, *, to: str | None = None, **more: Any) -> Option:
    """An option that can be given several times."""
    return option(name, metavar, text, to=to, multiple=True, **more)


def flag(name: str, text: str, *, to: str | None = None, default: bool | None = False) -> Option:
    """An option without a value."""
    return click.option(name, *filter(None, [to]), is_flag=True, default=default, help=text)


def number(name: str, kind: Any, text: str, *, to: str | None = None, **more: Any) -> Option:
    """An option whose help shows its default, and its range unless there is a metavar."""
    return click.option(name, *filter(None, [to]), type=kind, show_default=True, help=text, **more)


def choice(name: str, choices: Sequence[str], text: str, **more: Any) -> Option:
    """An option with one of several values, the first by default."""
    return number(name, click.Choice(choices), text, **{"default": choices[0], **more})


def joined(*options: Option) -> Option:
    """Several options as one decorator, which applies the last one first."""

    def decorate(command: Command) -> Command:
        for add in options:
            command = add(command)
        return command

    return decorate


def combined(name: str, make: Callable[..., object], *names: str, shared: str = "") -> Option:
    """Combine options of a command into one value; `shared` is also passed on its own."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> Any:
            shared_values = {shared: given[shared]} if shared else {}
            value = make(**{option: given.pop(option) for option in names}, **shared_values)
            return command(**{name: value}, **given)

        return cast("Command", run)

    return decorate


def _choose_settings(context: click.Context, _option: click.Parameter, path: str | None) -> None:
    if context.resilient_parsing:  # shell completion
        return
    settings.choose(path)
    if ignored_file := settings.passed_by(Path.cwd()):
        sys.stderr.write(
            f"policygen: note: {ignored_file} is not read; --config {ignored_file} reads it\n"
        )


config_option = option(
    "--config",
    "FILE",
    f"Your {settings.NAME}.  [default: ${settings.VARIABLE}, else none]",
    expose_value=False,
    callback=_choose_settings,
)
"""`--config`: settings count where they are named, and nowhere else."""
cub_option = joined(
    config_option,
    option(
        "--cub",
        "PATH",
        "The tree: a CCCL checkout, CUDA toolkit, unpacked wheel or fetched version (3.0.1);"
        " a rocPRIM checkout, ROCm installation, or rocprim@5.7.1.  [default: found"
        " automatically]",
    ),
)
"""`--cub`, for every command that reads a tree, and the settings that may name one."""
filter_options = joined(
    click.option(
        "-a",
        "--args",
        "axes",
        multiple=True,
        metavar="AXIS=VALUE",
        help="Only these values of an axis: T=I8, 'T{ct}=[I8,I16]'. Repeatable.",
    ),
    option(
        "-R",
        "REGEX",
        "Only names that match REGEX at their start, as in CCCL's scripts; '.*sort' matches"
        " anywhere.",
        to="regex",
        default="",
    ),
)
"""`-R` and `-a`, as CCCL's own scripts have them."""
where_options = joined(combined("selection", Filter, "regex", "axes"), filter_options)
"""`-R` and `-a`, as one `selection`."""


def arch_option(
    text: str = "Only for this architecture.",
    *,
    name: str = "--arch",
    to: str = "archs",
    words: tuple[str, ...] = (),
    amd: bool = False,
) -> Option:
    """`--arch`, again or with commas, as `archs`; `words` stand for several, `amd` allows AMD's."""

    def parse(
        context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
    ) -> tuple[str, ...]:
        return texts if context.resilient_parsing else typed_archs(texts, words, amd=amd)

    text = f"{text} Repeatable, or separated by commas."
    return repeated(name, "ARCH", text, to=to, callback=parse)


selection_options = joined(
    combined("selection", Filter, "headers", "regex", "axes", "archs"),
    arch_option(),
    filter_options,
    cub_option,
    click.argument("headers", nargs=-1, metavar="[HEADER]..."),
)
"""HEADER…, `-R`, `-a` and `--arch`, as one `selection`."""
force_option = flag("--force", "Overwrite a file that policygen did not write.")
"""`--force`, beside every option that names a file to write."""


def out_option(
    text: str = "Write the output to a file.", *, required: bool = False, makes_folder: bool = False
) -> Option:
    """`-o` and `--force`, as one `out`."""
    named = click.option("-o", "--out", "name", metavar="FILE", required=required, help=text)
    chosen = partial(Out.chosen, makes_folder=makes_folder)
    return joined(combined("out", chosen, "name", "force"), force_option, named)


def _print_to_out(command: Command) -> Command:
    """Redirect a command's output to `out`, including partial output if the command fails."""

    @wraps(command)
    def run(*, out: Out, **given: Any) -> Any:
        with out.printed():
            return command(**given)

    return cast("Command", run)


quiet_option: Option = click.option(
    "-q", "--quiet", is_flag=True, help="Print only results and errors."
)
print_options = joined(
    combined("output", Output, "as_json", "quiet", "verbose"),
    click.option("-v", "--verbose", is_flag=True, help="More output."),
    quiet_option,
    flag("--json", "Print one JSON document.", to="as_json"),
)
"""`--json`, `-q` and `-v`, as one `output`."""
output_options = joined(_print_to_out, out_option(), print_options)
"""The same, and `-o` for all that a command prints."""


# Sessions of commands that read a tree


def _trusted_store(context: click.Context, _option: click.Parameter, store: str) -> Path:
    """Trust a store that is named, or that this user created in the current folder."""
    source = context.get_parameter_source("store")
    return own_store(store if source is ParameterSource.COMMANDLINE else None)


def start(
    cub: str | None,
    store: Path | None = None,
    *,
    whole: bool = False,
    quiet: bool = False,
    library: Library | None = None,
) -> Session:
    """Open a tree, with progress reported on standard error."""
    progress = compile_progress(quiet=quiet)
    return open_session(
        cub, store, whole=whole, by_store=whole, library=library, progress=progress, note=warn
    )


workload_option = option(
    "--workload",
    "FILE",
    "A TOML file with your own workload or kernel, as for `tune`, instead of -R.",
    type=FILE,
)


# Selection of results, and rules for choosing variants


def files_option(text: str) -> Option:
    """`--db`, again for each database that is read, as `files`."""
    return repeated("--db", "DB", text, to="files")


def base_option(text: str = "or a fetched version.") -> Option:
    """`--base`, for commands that compare a tree with an earlier one; `text` ends what it takes."""
    return option(
        "--base",
        "TREE",
        f"What to compare with: a git revision, a folder, {text}  [default: the state before"
        " the last apply, else HEAD]",
    )


bench_option = repeated(
    "--bench",
    "PATH",
    "Benchmark sources, a CCCL checkout, or a cccl_meta_bench.csv with declared axis values"
    " and search spaces. Repeatable.",
    to="benches",
)
result_options = joined(
    option(
        "--base",
        "JSON",
        "NVBench's JSON result of the baseline, if DB are NVBench results of variants.",
    ),
    bench_option,
)
"""`--bench` and `--base`: what else is known of databases."""
library_option = choice(
    "--library",
    LIBRARIES,
    "The library whose tree to find.  [default: that of a surrounding checkout, else cub]",
    default=None,
)
"""`--library`, beside `--cub`, for commands that take trees of others than CUB."""
store_option = option(
    "--store",
    "FILE",
    "The store that records applies.",
    default=STORE,
    show_default=True,
    callback=_trusted_store,
)
"""`--store`, for every command that reads or writes the journal."""
files_argument: Option = click.argument("files", metavar="DB...", nargs=-1, required=True)
gpu_option = repeated(
    "--gpu-arch",
    "NAME=ARCH",
    "The architecture of a GPU unknown to policygen: 'B400=sm110'. Repeatable.",
    to="gpus",
)
confirm_option = repeated(
    "--confirm", "DB", "A later run of the finalists, which decides; may be a glob. Repeatable."
)


FORMS: dict[str, Literal["md", "html"]] = {".html": "html", ".htm": "html", ".md": "md"}
"""Maps file extensions to report formats."""


def given_results(
    files: Sequence[str],
    benches: Sequence[str] = (),
    base: str | None = None,
    confirm: Sequence[str] = (),
    gpus: Sequence[str] = (),
    *,
    regex: str,
    axes: tuple[str, ...],
) -> ResultFiles:
    """Return databases, and the selection from them."""
    selection = Filter(regex=regex, axes=axes)
    return ResultFiles(files, benches, base, confirm, selection, parse_gpus(gpus))


database_options = joined(
    combined("given", given_results, "files", "benches", "base", "regex", "axes"),
    filter_options,
    files_argument,
    result_options,
)
"""DB…, `--bench`, `--base`, `-R` and `-a`, as one `given`."""


def rule_options(least_score: float = RULES.least_score) -> Option:
    """When a variant is worth writing, as `rules`: options not given keep the configured values."""
    return joined(
        combined("rules", dict, "least_score", "worst_allowed", "confidence", "without_samples"),
        flag(
            "--without-samples",
            "Allow choices without samples, whose uncertainty is unknown.",
            default=None,
        ),
        number(
            "--confidence",
            float,
            f"Confidence level of intervals.  [default: {RULES.confidence:g}]",
        ),
        number(
            "--worst",
            float,
            f"Lowest allowed ratio on any runtime workload.  [default: {RULES.worst_allowed:g}]",
            to="worst_allowed",
        ),
        number("--least-score", float, f"Lowest score to choose.  [default: {least_score:g}]"),
    )
