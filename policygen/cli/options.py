"""Options shared by commands, with CCCL's meaning where CCCL has them."""

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from policygen import settings
from policygen.app.filters import Filter, typed_archs
from policygen.app.inputs import ResultFiles, parse_gpus
from policygen.app.own_workloads import with_workload
from policygen.app.session import LIBRARIES, STORE, Library, Session, open_session, own_store
from policygen.cli.output import Out, Output, printed
from policygen.cli.progress import compile_progress, warn
from policygen.errors import PolicygenError

Command = TypeVar("Command", bound=Callable[..., Any])


def cub_option(command: Command) -> Command:
    """`--cub`, for every command that reads a tree, and the settings that may name one."""
    return click.option(
        "--cub",
        metavar="PATH",
        help="A CCCL checkout, CUDA toolkit or unpacked wheel, or a fetched version such as 3.0.1;"
        " a checkout of rocPRIM, a ROCm installation, or rocprim@5.7.1."
        "  [default: found automatically]",
    )(config_option(command))


def library_option(command: Command) -> Command:
    """`--library`, beside `--cub`, for commands that take trees of others than CUB."""
    return click.option(
        "--library",
        type=click.Choice(LIBRARIES),
        help="Whose tree is looked for.  [default: a checkout's around here, else cub]",
    )(command)


def config_option(command: Command) -> Command:
    """`--config`: settings count where they are named, and nowhere else."""

    def choose(context: click.Context, _option: click.Parameter, path: str | None) -> None:
        if context.resilient_parsing:  # shell completion
            return
        settings.choose(path)
        if ignored_file := settings.passed_by(Path.cwd()):
            sys.stderr.write(
                f"policygen: note: {ignored_file} is not read; --config {ignored_file} reads it\n"
            )

    return click.option(
        "--config",
        metavar="FILE",
        expose_value=False,
        callback=choose,
        help=f"One's own {settings.NAME}.  [default: ${settings.VARIABLE}, else none]",
    )(command)


def filter_options(command: Command) -> Command:
    """`-R` and `-a`, as CCCL's own scripts have them."""
    command = click.option(
        "-a",
        "--args",
        "axes",
        multiple=True,
        metavar="AXIS=VALUE",
        help="Only this value of an axis, or several: 'T{ct}=[I8,I16]'. Repeatable.",
    )(command)
    return click.option(
        "-R",
        "regex",
        default="",
        metavar="REGEX",
        help="Only algorithms whose name begins with a match of REGEX.",
    )(command)


def arch_option(
    command: Command,
    text: str = "For this arch.",
    *,
    words: tuple[str, ...] = (),
    amd: bool = False,
) -> Command:
    """`--arch`, again or with commas, as `archs`; `words` stand for several, `amd` allows AMD's."""
    return click.option(
        "--arch",
        "archs",
        multiple=True,
        metavar="ARCH",
        callback=lambda context, _option, texts: (
            texts if context.resilient_parsing else typed_archs(texts, words, amd=amd)
        ),
        help=f"{text} Repeatable, or with commas.",
    )(command)


def selection_options(command: Command, arch: str = "For this arch.") -> Command:
    """HEADER…, `-R`, `-a` and `--arch`, as one `selection`."""
    command = combined_option(command, "selection", Filter, "headers", "regex", "axes", "archs")
    command = arch_option(command, arch)
    headers = click.argument("headers", nargs=-1, metavar="[HEADER]...")
    return headers(cub_option(filter_options(command)))


def store_option(command: Command) -> Command:
    """`--store`, for every command that reads or writes the journal."""
    return click.option(
        "--store",
        default=STORE,
        show_default=True,
        metavar="FILE",
        callback=_trusted_store,
        help="Where applies are recorded.",
    )(command)


def _trusted_store(context: click.Context, _option: click.Parameter, store: str) -> Path:
    """Trust a store that is named, or that this user created in the current folder."""
    source = context.get_parameter_source("store")
    return own_store(store if source is ParameterSource.COMMANDLINE else None)


def output_options(command: Command, *, own: bool = False) -> Command:
    """`--json`, `-q`, `-v` as one `output`; and `-o`, where the command has none of its `own`."""
    if not own:
        command = out_option(_print_to_out(command), "Write what is printed to a file.")
    return decorated(
        combined_option(command, "output", Output, "as_json", "quiet", "verbose"),
        click.option("-v", "--verbose", is_flag=True, help="Say more."),
        click.option("-q", "--quiet", is_flag=True, help="Results and errors only."),
        click.option(
            "--json", "as_json", is_flag=True, help="One JSON document on standard output."
        ),
    )


def out_option(
    command: Command,
    text: str = "Write it to a file.",
    *,
    required: bool = False,
    chosen: Callable[..., Out] = Out.chosen,
) -> Command:
    """`-o` and `--force`, as one `out`."""
    named = click.option("-o", "--out", "name", metavar="FILE", required=required, help=text)
    return named(force_option(combined_option(command, "out", chosen, "name", "force")))


def _print_to_out(command: Command) -> Command:
    """Redirect a command's output to `out`, including partial output if the command fails."""

    @wraps(command)
    def run(*, out: Out, **given: Any) -> Any:
        if out.path is None:
            return command(**given)
        with printed() as data:
            status, error = None, None
            try:
                status = command(**given)
            except PolicygenError as failed:
                error = failed
        if data.getvalue() or error is None:
            out.write(data.getvalue().decode("utf-8", "surrogateescape"))
        if error is not None:
            raise error
        return status

    return cast("Command", run)


def force_option(command: Command) -> Command:
    """`--force`, beside every option that names a file to write."""
    return click.option(
        "--force", is_flag=True, help="Replace a file that is there, whoever made it."
    )(command)


def decorated(command: Command, *options: Callable[[Command], Command]) -> Command:
    """Apply options to a command, the last one first."""
    for decorate in options:
        command = decorate(command)
    return command


def combined_option(
    command: Command, name: str, make: Callable[..., object], *names: str, shared: str = ""
) -> Command:
    """Combine options of a command into one value; `shared` is also passed on its own."""

    @wraps(command)
    def run(**given: Any) -> Any:
        shared_values = {shared: given[shared]} if shared else {}
        value = make(**{option: given.pop(option) for option in names}, **shared_values)
        return command(**{name: value}, **given)

    return cast("Command", run)


# Sessions of commands that read a tree


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


workload_option = click.option(
    "--workload",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A workload of one's own, as `tune` takes it, in place of -R.",
)


# `--workload`: a user-defined workload in place of CUB's benchmarks


def with_own(session: Session, path: Path | None, selection: Filter) -> tuple[Session, Filter]:
    """Switch to a user-defined workload, if a file is named, until the command ends."""
    return click.get_current_context().with_resource(with_workload(session, path, selection))


# Selection of results, and rules for choosing variants


def result_options(command: Command) -> Command:
    """`--bench` and `--base`: what else is known of databases."""
    command = click.option(
        "--base",
        metavar="JSON",
        help="NVBench's result of the base, when DB are NVBench results of variants.",
    )(command)
    return bench_option(command)


bench_option: Callable[[Command], Command] = click.option(
    "--bench",
    "benches",
    multiple=True,
    metavar="PATH",
    help="Benchmark sources, a CCCL checkout or a cccl_meta_bench.csv: declared axis values"
    " and search spaces. Repeatable.",
)
gpu_option: Callable[[Command], Command] = click.option(
    "--gpu-arch",
    "gpus",
    multiple=True,
    metavar="NAME=ARCH",
    help="The architecture of a GPU that policygen does not know: 'B400=sm110'. Repeatable.",
)
confirm_option: Callable[[Command], Command] = click.option(
    "--confirm",
    multiple=True,
    metavar="DB",
    help="A later run of the finalists, which decides; or a glob of such. Repeatable.",
)


def database_options(command: Command) -> Command:
    """DB…, `--bench`, `--base`, `-R` and `-a`, as one `given`."""
    names = ("files", "benches", "base", "regex", "axes")
    command = filter_options(combined_option(command, "given", given_results, *names))
    return result_options(files_argument(command))


FORMS = {".html": "html", ".htm": "html", ".md": "md"}
"""Maps file extensions to report formats."""


def files_argument(command: Command) -> Command:
    """DB…."""
    return click.argument("files", metavar="DB...", nargs=-1, required=True)(command)


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


def rule_options(command: Command) -> Command:
    """When a variant is worth writing, as `rules`: what is not said is as it is configured."""
    names = ("least_score", "worst_allowed", "confidence", "without_samples")
    return decorated(
        combined_option(command, "rules", dict, *names),
        click.option(
            "--without-samples",
            is_flag=True,
            default=None,
            help="Choose also where no samples tell how sure a score is.",
        ),
        click.option("--confidence", type=float, help="Of intervals.  [default: 0.95]"),
        click.option(
            "--worst",
            "worst_allowed",
            type=float,
            help="Least ratio of any runtime workload.  [0.95]",
        ),
        click.option("--least-score", type=float, help="Least score of a choice.  [1.015]"),
    )
