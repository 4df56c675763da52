"""Applies the lint rules to a tree."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from policygen.errors import InputError
from policygen.model.audits import Finding, LintReport, RuleName, Scan, Severity
from policygen.proof import lint_checks
from policygen.proof.lint_subject import HeaderSource, Remark, Subject, place, subjects


@dataclass(frozen=True, slots=True)
class Rule:
    """A check of one entry."""

    name: RuleName
    severity: Severity
    summary: str
    check: Callable[[Subject], Iterable[Remark]]
    """Returns nothing if the rule concerns whole headers."""
    returns: bool = False
    """Whether it applies to guarded returns, too."""
    configs: bool = False
    """Whether it applies to rocPRIM's configs, too."""

    def judges(self, subject: Subject) -> bool:
        """Whether the rule applies to an entry."""
        if not subject.returns:
            return self.configs
        return self.returns or subject.entry.kind != "branch"


RULES = (
    Rule(
        "items-not-divisible-by-vector",
        "warning",
        "the vector length does not divide the items per thread: CUB loads no vectors",
        lint_checks.divisible,
        returns=True,
    ),
    Rule(
        "threads-not-warp-multiple",
        "error",
        "the thread count is not a multiple of 32",
        lint_checks.warp_multiple,
        returns=True,
        configs=True,
    ),
    Rule(
        "threads-over-limit",
        "error",
        "more threads than a block can have, or fewer than a warp",
        lint_checks.limit,
        returns=True,
        configs=True,
    ),
    Rule(
        "shared-memory-over-limit",
        "error",
        "a tile that is transposed does not fit into a block's shared memory",
        lint_checks.fits,
        returns=True,
    ),
    Rule(
        "label-contradicts-values",
        "warning",
        "the variant in the comment differs from the entry",
        lint_checks.contradictions,
        returns=True,
    ),
    Rule(
        "label-stores-exponent",
        "warning",
        "the entry has the exponent where the comment's variant means a power of two",
        lint_checks.exponents,
        returns=True,
    ),
    Rule(
        "score-of-other-gpu",
        "warning",
        "the comment names a GPU that never selects the entry",
        lint_checks.other_gpu,
    ),
    Rule(
        "same-as-inherited",
        "note",
        "a value repeats what the base or the primary template gives",
        lint_checks.repeats,
    ),
    Rule(
        "duplicate-key",
        "error",
        "two live entries have the same arguments",
        lint_checks.duplicate,
        configs=True,
    ),
    Rule(
        "not-provable",
        "error",
        "a header depends on more than types and architecture, such as a file name or macro",
        lambda _: (),
        configs=True,
    ),
)


def lint(
    scan: Scan,
    sources: Mapping[str, HeaderSource],
    rules: tuple[Rule, ...] = RULES,
    families: Collection[tuple[str, str, str]] | None = None,
    unprovable: Collection[Finding] = (),
) -> LintReport:
    """Applies the rules that fit the tree to the entries of a scan, or of some of its families.

    `unprovable` has the findings about headers that depend on outside inputs.
    """
    rules = tuple(rule for rule in rules if scan.cub.has_returns or rule.configs)
    if not rules:
        names = ", ".join(rule.name for rule in RULES if rule.configs)
        message = f"none of the chosen rules applies to {scan.cub.called}'s headers"
        raise InputError(message, f"Rules that apply: {names}")
    judged = [
        subject for subject in subjects(scan) if families is None or subject.family.path in families
    ]
    findings = [
        _finding(rule, subject, remark, sources[subject.family.header])
        for subject in judged
        for rule in rules
        if rule.judges(subject)
        for remark in rule.check(subject)
    ]
    active = {rule.name for rule in rules}
    findings += [finding for finding in unprovable if finding.rule in active]
    findings.sort(key=attrgetter("path", "line", "column", "rule", "message"))
    families_by_name = {subject.family.path: subject.family for subject in judged}
    bound_names = {subject.family.path for subject in judged if subject.bindings}
    return LintReport(
        cub=scan.cub,
        off=tuple(rule.name for rule in RULES if rule.name not in active),
        families=len(families_by_name),
        entries=len(judged),
        unbound=tuple(
            "::".join(name[1:])
            for name, family in families_by_name.items()
            # A family without specializations, or a function without values, only helps others.
            if name not in bound_names
            and any(entry.kind != "branch" or entry.members for entry in family.specializations)
        ),
        findings=tuple(findings),
        counts={
            rule.name: sum(finding.rule == rule.name for finding in findings) for rule in rules
        },
        problems=scan.problems,
    )


def _finding(rule: Rule, subject: Subject, remark: Remark, source: HeaderSource) -> Finding:
    return Finding(
        rule=rule.name,
        severity=rule.severity,
        header=subject.family.header,
        family=subject.family.name,
        args=subject.entry.args,
        message=remark.message,
        path=source.path,
        **place(source.data, remark.span, remark.word)._asdict(),
    )


# Selects rules.


def choose(only: Iterable[str], off: Iterable[str]) -> tuple[Rule, ...]:
    """Returns the selected rules; raises for an unknown name."""
    only, off = frozenset(only), frozenset(off)
    names = [rule.name for rule in RULES]
    if unknown := sorted((only | off) - set(names)):
        raise InputError(f"unknown rule {unknown[0]!r}", f"Rules: {', '.join(names)}")
    chosen = tuple(
        rule for rule in RULES if rule.name not in off and (not only or rule.name in only)
    )
    if not chosen:
        raise InputError("all rules are disabled", f"Rules: {', '.join(names)}")
    return chosen
