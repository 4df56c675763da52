"""Commands that do again what was done, as they can be typed."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from policygen.app.inputs import ResultFiles, choose_rules
from policygen.app.session import STORE, Session
from policygen.model.plans import Given, Options, Plan
from policygen.model.results import Rules

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
    """Makes commands for the tree and the store of a session."""

    session: Session

    def __call__(self, *words: str, store: bool = False, writes: bool = False) -> str:
        """A command, with the tree that was named; one that writes has to name it."""
        cub, kept = self.session.cub, self.session.store
        there = ["--cub", cub.root] if cub.found == "--cub" else []
        if writes and not cub.is_named:
            there = ["--cub", cub.version if cub.found == "cub_headers" else cub.root]
        there += ["--store", str(kept)] if store and str(kept) != STORE else []
        return shlex.join(["policygen", *words, *there])


def given_of(results: ResultFiles, measured_on: str | None) -> Given:
    """What a plan is asked for, as it is named."""
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
    """What a plan was asked for; of one that does not say it, the databases of its actions."""
    told = dict.fromkeys(name for action in plan.actions for name in action.databases)
    return plan.given or Given(databases=tuple(told))


def planning(given: Given, options: Options) -> Words:
    """All that changes a plan."""
    plain = Options(arch=options.arch)
    words = choosing(given, options)
    for name, option in _CHOICES.items():
        if (value := getattr(options, name)) != getattr(plain, name):
            words += [option, value]
    words += [option for name, option in _WRITING.items() if getattr(options, name)]
    return [*words, *_named("--measured-on", [given.measured_on] if given.measured_on else ())]


def choosing(
    given: Given, options: Options, regex: str | None = None, axes: Sequence[str] | None = None
) -> Words:
    """What is chosen from, and by which rules; `regex` and `axes` choose other workloads."""
    words = _named("--db", given.databases)
    words += _named("--bench", given.benches)
    words += _named("--base", [given.base] if given.base else ())
    words += _named("--confirm", given.confirm)
    words += ["--arch", options.arch]
    pattern = given.regex if regex is None else regex
    words += _named("-R", [pattern] if pattern else ())
    words += _named("-a", given.axes if axes is None else axes)
    words += _named("--gpu-arch", [f"{name}={arch}" for name, arch in given.gpus.items()])
    words += ["--any-gpu"] if options.force else []
    return words + _ruled(options.rules)


def _ruled(rules: Rules) -> Words:
    """The rules that are not those that count without a word."""
    plain, configured = Rules(), choose_rules(prefer_simple=False)
    words = []
    for name, option in _NUMBERS.items():
        value = getattr(rules, name)
        if value != getattr(plain, name) or value != getattr(configured, name):
            words += [option, str(value)]
    return words + [option for name, option in _FLAGS.items() if getattr(rules, name)]


def _named(option: str, values: Sequence[str]) -> Words:
    return [word for value in values for word in (option, value)]
