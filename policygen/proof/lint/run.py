"""Makes the findings of a tree."""

from collections.abc import Collection, Mapping

from policygen.model.lint import Finding, LintReport
from policygen.model.tuning import Entry, Family, Scan
from policygen.proof.lint.place import HeaderSource, place
from policygen.proof.lint.rules import RULES, Rule, for_tree
from policygen.proof.lint.subject import Remark, Subject, subjects

FamilyName = tuple[str, str, str]


def lint(
    scan: Scan,
    sources: Mapping[str, HeaderSource],
    rules: tuple[Rule, ...] = RULES,
    families: Collection[FamilyName] | None = None,
    unprovable: Collection[Finding] = (),
) -> LintReport:
    """Applies rules to the entries of a scan, or of some of its families.

    `unprovable` is what its headers ask for.
    """
    rules = for_tree(rules, scan.cub)
    judged = [s for s in subjects(scan) if families is None or family_name(s.family) in families]
    findings = [
        _finding(rule, subject, remark, sources[subject.family.header])
        for subject in judged
        for rule in rules
        if rule.judges(subject)
        for remark in rule.check(subject)
    ]
    asked = {rule.name for rule in rules}
    findings += [finding for finding in unprovable if finding.rule in asked]
    findings.sort(key=lambda f: (f.path, f.line, f.column, f.rule, f.message))
    seen = {family_name(s.family): s.family for s in judged}
    known = {family_name(s.family) for s in judged if s.bindings}
    return LintReport(
        cub=scan.cub,
        off=tuple(rule.name for rule in RULES if rule.name not in asked),
        families=len(seen),
        entries=len(judged),
        unbound=tuple(
            "::".join(name[1:])
            for name, family in seen.items()
            # One without specializations only helps others, as does a function without values.
            if name not in known and any(map(_says, family.specializations))
        ),
        findings=tuple(findings),
        counts={rule.name: sum(f.rule == rule.name for f in findings) for rule in rules},
        problems=scan.problems,
    )


def _says(entry: Entry) -> bool:
    return entry.kind != "branch" or bool(entry.members)


def family_name(family: Family) -> FamilyName:
    """What tells a family from all others: two in one header can have the same name."""
    return family.header, family.namespace, family.name


def _finding(rule: Rule, subject: Subject, remark: Remark, source: HeaderSource) -> Finding:
    where = place(source.data, remark.span, remark.word)
    return Finding(
        rule=rule.name,
        severity=rule.severity,
        header=subject.family.header,
        family=subject.family.name,
        args=subject.entry.args,
        line=where.line,
        column=where.column,
        message=remark.message,
        path=source.path,
        text=where.text,
        width=where.width,
    )
