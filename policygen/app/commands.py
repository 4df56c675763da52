"""Builds command lines that repeat what was done."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from policygen.app.inputs import ResultFiles, choose_rules
from policygen.app.session import STORE, Session
from policygen.model.plans import Given, Options, Plan
from policygen.model.results import Rules
from policygen.model.trees import FOUND_BY_STORE

Words = list[str]
_NUMBERS = {
    "least_score": "--least-score",
    "worst_allowed": "--worst",
    "confidence": "--confidence",
}
_FLAGS = {"without_samples": "--without-samples", "accept_unconfirmed": "--accept-unconfirmed"}
_CHOICES = {
    "reach": "--reach",
    "collisions": "--collisions",
    "provenance": "--provenance",
    "legacy": "--legacy",
}
_WRITING = {"narrow": "--narrow", "next_best": "--next-best"}


@dataclass(frozen=True, slots=True)
class Typed:
    """Builds commands for the tree and the store of a session."""

    session: Session

    def __call__(self, *words: str, store: bool = False, writes: bool = False) -> str:
        """Returns a command line with the named tree. Commands that write must name the tree."""
        cub, store_path = self.session.cub, self.session.store
        origin = cub.found
        options = ["--cub", cub.root] if origin in {"--cub", FOUND_BY_STORE} else []
        if writes and not cub.is_named:
            options = ["--cub", cub.version if origin == "cub_headers" else cub.root]
        options += ["--store", str(store_path)] if store and str(store_path) != STORE else []
        return shlex.join(["policygen", *words, *options])


def given_of(results: ResultFiles, measured_on: str | None) -> Given:
    """Returns the inputs of a plan as they were named."""
    return Given(
        databases=tuple(results.files),
        benches=tuple(results.benches),
        base=results.base,
        confirm=tuple(results.confirm),
        regex=results.where.regex,
        axes=results.where.axes,
        gpus=dict(results.gpus),
        measured_on=measured_on,
    )


def given_or_told(plan: Plan) -> Given:
    """Returns the recorded inputs of a plan, or else the databases of its actions."""
    databases = dict.fromkeys(name for action in plan.actions for name in action.databases)
    return plan.given or Given(databases=tuple(databases))


def planning(given: Given, options: Options) -> Words:
    """Returns all options that affect a plan."""
    plain = Options(arch=options.arch)
    words = choosing(given, options)
    for name, option in _CHOICES.items():
        if (value := getattr(options, name)) != getattr(plain, name):
            words += [option, value]
    words += [option for name, option in _WRITING.items() if getattr(options, name)]
    return [
        *words,
        *_repeat_option("--measured-on", [given.measured_on] if given.measured_on else ()),
    ]


def choosing(
    given: Given, options: Options, regex: str | None = None, axes: Sequence[str] | None = None
) -> Words:
    """Returns options for inputs and rules; `regex` and `axes` override the workloads."""
    words = _repeat_option("--db", given.databases)
    words += _repeat_option("--bench", given.benches)
    words += _repeat_option("--base", [given.base] if given.base else ())
    words += _repeat_option("--confirm", given.confirm)
    words += ["--arch", options.arch]
    pattern = given.regex if regex is None else regex
    words += _repeat_option("-R", [pattern] if pattern else ())
    words += _repeat_option("-a", given.axes if axes is None else axes)
    words += _repeat_option("--gpu-arch", [f"{name}={arch}" for name, arch in given.gpus.items()])
    words += ["--any-gpu"] if options.force else []
    return words + _rule_options(options.rules)


def _rule_options(rules: Rules) -> Words:
    """Returns options for rules that differ from the defaults."""
    plain, configured = Rules(), choose_rules(prefer_simple=False)
    words = []
    for name, option in _NUMBERS.items():
        value = getattr(rules, name)
        if value != getattr(plain, name) or value != getattr(configured, name):
            words += [option, str(value)]
    return words + [option for name, option in _FLAGS.items() if getattr(rules, name)]


def _repeat_option(option: str, values: Sequence[str]) -> Words:
    return [word for value in values for word in (option, value)]
