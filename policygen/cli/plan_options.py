"""Options that affect plans, for `plan`, `apply` and other commands that plan."""

from collections.abc import Mapping
from typing import Any

import click

from policygen.app.effect import Planned
from policygen.app.filters import parse_archs, parse_target
from policygen.app.inputs import ResultFiles, Rules, choose_rules, shipped_results
from policygen.app.plan import Options, plan_tunings
from policygen.app.session import Session
from policygen.cli.options import (
    arch_option,
    choice,
    confirm_option,
    cub_option,
    files_option,
    filter_options,
    flag,
    given_results,
    gpu_option,
    joined,
    option,
    result_options,
    rule_options,
)
from policygen.cli.progress import warn
from policygen.errors import InputError

GIVEN = (
    "files", "shipped", "benches", "base", "cub", "regex", "axes", "archs", "reach", "reaches",
    "collisions", "next_best", "any_gpu", "provenance", "legacy", "measured_on", "least_score",
    "worst_allowed", "confidence", "without_samples", "confirm", "accept_unconfirmed", "gpus",
)  # fmt: skip

_MEASURED_ON = option(
    "--measured-on",
    "TREE",
    "The tree that was measured, to compare its baseline: a path, a fetched version, or a git"
    " revision.  [default: the recorded version, if it is fetched]",
)
_ACCEPT = flag(
    "--accept-unconfirmed",
    "Also write gains that no second run confirmed; they may be selection bias.",
    default=None,
)
_ANY_GPU = flag("--any-gpu", "Accept results from GPUs of other architectures.")
_WRITING = (
    choice(
        "--provenance",
        ["scores", "full"],
        "Content of the comments: variant and scores, or also GPU, versions and date.",
    ),
    flag(
        "--next-best",
        "If an entry cannot express the best variant, write the best one that it can.",
    ),
    choice(
        "--collisions",
        ["best-worst", "split"],
        "Workloads that share an entry and differ: prefer the variant with the best worst case"
        " and split the entry where none suits all, or split it at once.",
    ),
    choice(
        "--reach",
        ["only", "later"],
        "Later architectures keep their values (only), or inherit the new ones (later).",
    ),
    arch_option(
        "A later architecture that may inherit the new values, where others keep theirs.",
        amd=True,
        name="--reaches",
        to="reaches",
    ),
    choice(
        "--legacy",
        ["leave", "warn", "update"],
        "Specializations beside policy selectors: leave them, warn where they differ, or"
        " update them too.",
    ),
)
_SHIPPED = option(
    "--from",
    "NAME",
    "Confirmed results of policygen's: h100 or h200, for CUB 3.6.0. Instead of --db and --arch.",
    to="shipped",
)
_INPUTS = (
    filter_options,
    cub_option,
    gpu_option,
    result_options,
    arch_option("The architecture to tune: sm90."),
    files_option("A database, NVBench JSON results, a glob or a folder. Repeatable."),
)


choice_options = joined(rule_options(), _ACCEPT, confirm_option, _ANY_GPU, _SHIPPED, *_INPUTS)
"""`--db`, `--arch`, and what a choice must fulfil."""
planning_options = joined(
    *(rule_options(), _ACCEPT, confirm_option, _MEASURED_ON, _ANY_GPU, _SHIPPED),
    *(*_WRITING, *_INPUTS),
)
"""`--db`, `--arch` and what changes the plan."""


def make_plan(
    session: Session, given: Mapping[str, Any], *, prove: bool, ways: bool = False
) -> Planned:
    """Plan according to the command line."""
    given = with_shipped(session, given)
    names = ("reach", "reaches", "collisions", "next_best", "provenance", "legacy")
    chosen = {name: given[name] for name in names} | {"force": given["any_gpu"]}
    options = Options(arch=parse_target(given["archs"]), rules=choice_rules(given), **chosen)
    files, base = chosen_files(given), given["measured_on"]
    return plan_tunings(session, files, options, measured_on=base, prove=prove, ways=ways)


def with_shipped(session: Session, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options with the database and the architecture that --from stands for."""
    if given["shipped"] is None:
        return given
    if given["files"]:
        raise click.UsageError("--from has results of its own; omit --db.")
    shipped, database = shipped_results(given["shipped"], session.cub)
    if parse_archs(given["archs"]) - {shipped.arch}:
        raise InputError(
            f"the results {given['shipped']} are for {shipped.arch}",
            "Omit --arch; policygen campaign measures another GPU.",
        )
    warn(
        f"results of {shipped.gpu}, CUDA {shipped.ctk}, {shipped.date}; on another GPU of"
        f" {shipped.arch}, confirm them: policygen verify-performance"
    )
    return {**given, "files": (str(database),), "archs": (shipped.arch,)}


def chosen_files(given: Mapping[str, Any]) -> ResultFiles:
    """Return the databases, and the selection from them."""
    names = ("files", "benches", "base", "confirm", "gpus", "regex", "axes")
    return given_results(**{name: given[name] for name in names})


def choice_rules(given: Mapping[str, Any]) -> Rules:
    """Return the rules that a choice must satisfy."""
    accept = given["accept_unconfirmed"]
    return choose_rules(prefer_simple=False, accept_unconfirmed=accept, **given["rules"])
