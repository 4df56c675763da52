"""The options that all commands share, with CCCL's meaning where CCCL has them."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from policygen import settings_file
from policygen.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])


def cub_option(command: Command) -> Command:
    """`--cub`, for every command that reads a tree, and the settings that may name one."""
    return click.option(
        "--cub",
        metavar="PATH",
        help="A CCCL checkout, CUDA toolkit or unpacked wheel, or a fetched version such as 3.0.1."
        "  [default: found automatically]",
    )(config_option(command))


def config_option(command: Command) -> Command:
    """`--config`: settings count where they are named, and nowhere else."""

    def choose(_context: click.Context, _option: click.Parameter, path: str | None) -> None:
        settings_file.choose(path)
        if there := settings_file.passed_by(Path.cwd()):
            sys.stderr.write(f"policygen: note: {there} is not read; --config {there} reads it\n")

    return click.option(
        "--config",
        metavar="FILE",
        expose_value=False,
        callback=choose,
        help=f"One's own {settings_file.NAME}.  [default: ${settings_file.VARIABLE}, else none]",
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


STORE = "policygen.db"


def store_option(command: Command) -> Command:
    """`--store`, for every command that reads or writes the journal."""
    return click.option(
        "--store",
        default=STORE,
        show_default=True,
        metavar="FILE",
        callback=_believed,
        help="Where applies are recorded.",
    )(command)


def is_believed(store: str) -> bool:
    """Whether a store counts: it is named, or was made by this user in the current folder."""
    from click.core import ParameterSource

    from policygen.own_stores import is_own

    context = click.get_current_context(silent=True)
    named = context and context.get_parameter_source("store") is ParameterSource.COMMANDLINE
    return bool(named) or store != STORE or is_own(Path(store))


def _believed(_context: click.Context, _option: click.Parameter, store: str) -> str:
    if Path(store).exists() and not is_believed(store):
        raise InputError(
            f"{Path(store).resolve()} is not known to be your store; it could be a stranger's",
            f"Where it is yours, name it: --store {store}",
        )
    return store


def output_options(command: Command) -> Command:
    """`--json`, `-q` and `-v`."""
    for decorate in (
        click.option("-v", "--verbose", is_flag=True, help="Say more."),
        click.option("-q", "--quiet", is_flag=True, help="Results and errors only."),
        click.option(
            "--json", "as_json", is_flag=True, help="One JSON document on standard output."
        ),
    ):
        command = decorate(command)
    return command


def parse_regex(text: str) -> re.Pattern[str]:
    """CCCL's `-R`: the pattern must match at the beginning of the name, not all of it."""
    try:
        return re.compile(text)
    except re.error as error:
        raise InputError(f"-R {text!r} is no regular expression: {error}") from error


def parse_archs(texts: Sequence[str]) -> frozenset[str]:
    """Architectures as they are typed: `sm_90`, `90` and `9.0` are `sm90`."""
    from policygen.model.arch import parse_arch

    try:
        return frozenset(parse_arch(text) for text in texts)
    except ValueError as error:
        raise InputError(str(error)) from error


def parse_axes(texts: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """CCCL's `-a`: `Axis=value` or `Axis=[v1,v2]`; the last one of a name counts."""
    chosen: dict[str, frozenset[str]] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"-a {text!r} is not of the form AXIS=VALUE")
        values = value.removeprefix("[").removesuffix("]").split(",")
        chosen[name] = frozenset(v.strip() for v in values)
    return chosen
