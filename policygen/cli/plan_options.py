"""What changes a plan, as options of `plan`, `apply` and whatever else plans."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from policygen.cli.db import chosen_rules, confirm_option, sources
from policygen.cli.options import cub_option, filter_options, parse_archs
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.model.plan import Options
    from policygen.model.results import Rules

Command = TypeVar("Command", bound=Callable[..., Any])
GIVEN = (
    "files", "benches", "base", "cub", "regex", "axes", "arch", "reach", "collisions", "narrow",
    "force", "provenance", "legacy", "measured_on", "least_score", "worst", "confidence",
    "without_samples", "confirm", "accept_unconfirmed",
)  # fmt: skip


_RULES: tuple[Callable[..., Any], ...] = (
    click.option("--confidence", type=float, help="Of intervals.  [default: 0.95]"),
    click.option("--worst", type=float, help="Least ratio of any runtime workload.  [0.95]"),
    click.option("--least-score", type=float, help="Least score of a choice.  [1.015]"),
    click.option(
        "--without-samples",
        is_flag=True,
        help="Choose also where no samples tell how sure a score is.",
    ),
    click.option(
        "--accept-unconfirmed",
        is_flag=True,
        help="Write also what only the search says that found it, and that may be luck.",
    ),
    confirm_option,
)
_MEASURED_ON: Callable[..., Any] = click.option(
    "--measured-on",
    metavar="TREE",
    help="The tree that was measured, to compare its base: a path, a fetched version or a"
    " git revision.  [default: the recorded version, when it is fetched]",
)
_FORCE: Callable[..., Any] = click.option(
    "--force", is_flag=True, help="Take results of GPUs of other architectures."
)
_WRITING: tuple[Callable[..., Any], ...] = (
    click.option(
        "--provenance",
        type=click.Choice(["scores", "full"]),
        default="scores",
        show_default=True,
        help="What a comment says: variant and scores, or GPU, versions and day, too.",
    ),
    click.option(
        "--narrow",
        is_flag=True,
        help="Where a variant is worse for some types of an entry, name those and keep theirs.",
    ),
    click.option(
        "--collisions",
        type=click.Choice(["best-worst", "split"]),
        default="best-worst",
        show_default=True,
        help="Of workloads with one entry: the variant that is best in its worst case, or an"
        " entry for each type.",
    ),
    click.option(
        "--reach",
        type=click.Choice(["only", "later"]),
        default="only",
        show_default=True,
        help="Keep what later architectures have, or let them inherit.",
    ),
    click.option(
        "--legacy",
        type=click.Choice(["leave", "warn", "update"]),
        default="leave",
        show_default=True,
        help="Of struct families that stand beside policy selectors: leave them, name those"
        " that say something else than what is written, or write the results there, too.",
    ),
)
_INPUTS: tuple[Callable[..., Any], ...] = (
    filter_options,
    cub_option,
    sources,
    click.option("--arch", metavar="ARCH", help="The architecture that is tuned: sm90."),
    click.option(
        "--db",
        "files",
        multiple=True,
        metavar="DB",
        help="A cccl_meta_bench.db, NVBench's JSON results, or a glob. Repeatable.",
    ),
)


def choice_options(command: Command) -> Command:
    """`--db`, `--arch`, and what a choice must fulfil."""
    return _decorated(command, (*_RULES, _FORCE, *_INPUTS))


def planning_options(command: Command) -> Command:
    """`--db`, `--arch` and what changes the plan."""
    return _decorated(command, (*_RULES, _MEASURED_ON, _FORCE, *_WRITING, *_INPUTS))


def _decorated(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    for decorate in options:
        command = decorate(command)
    return command


def defaults() -> Mapping[str, Any]:
    """How a plan is made where nothing is asked for."""
    command = click.command()(planning_options(lambda **_given: None))
    return command.make_context("plan", []).params


def options_of(given: Mapping[str, Any]) -> "Options":
    """How the plan is made."""
    from policygen.model.plan import Options

    arch = parse_target(given["arch"])
    names = ("reach", "collisions", "narrow", "force", "provenance", "legacy")
    today = datetime.now(UTC).date().isoformat() if given["provenance"] == "full" else None
    chosen = {name: given[name] for name in names}
    return Options(arch=arch, rules=rules_of(given), date=today, **chosen)


def parse_target(text: str | None) -> str:
    """The architecture that is tuned."""
    if text is None:
        raise InputError("no architecture is given", "Name the one that was measured: --arch sm90")
    (arch,) = parse_archs([text])
    return arch


def rules_of(given: Mapping[str, Any]) -> "Rules":
    """What a choice must fulfil."""
    return chosen_rules(
        None,
        least_score=given["least_score"],
        worst_allowed=given["worst"],
        confidence=given["confidence"],
        without_samples=given["without_samples"] or None,
        accept_unconfirmed=given["accept_unconfirmed"] or None,
        prefer_simple=False,
    )
