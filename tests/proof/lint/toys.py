"""Rules on small headers, with bindings made for them."""

from policygen.model.bindings import FamilyBinding
from policygen.proof.lint_rules import RULES
from policygen.proof.lint_subject import Subject
from tests.headers.headers import read, wrap

CHECKS = {rule.name: rule.check for rule in RULES}


def binding(members, args=("T", "Size"), name="sm90_tuning"):
    """How variants fill the family `sm90_tuning<class T, int Size>`."""
    return FamilyBinding(site="demo", name=name, args=args, members=members)


def subjects(body, *bindings, families=None, benchmarks=()):
    families = families if families is not None else read(body)
    return [
        Subject(entry, family, families, bindings, benchmarks)
        for family in families
        for entry in family.entries
        if not entry.disabled
    ]


def find(rule, body, *bindings, families=None, benchmarks=()):
    """What a rule points at, and what it says."""
    data = wrap(body)
    found = []
    for subject in subjects(body, *bindings, families=families, benchmarks=benchmarks):
        for remark in CHECKS[rule](subject):
            start, end = remark.span
            found.append((remark.word or data[start:end].decode(), remark.message))
    return found


def entry(values, *, args="T, 4", comment="", base=""):
    """One partial specialization: `items = 4`, `bool rle_compress = true`."""
    typed = (value if " " in value.partition(" =")[0] else f"int {value}" for value in values)
    members = "".join(f"  static constexpr {value};\n" for value in typed)
    return (
        f"template <class T> struct sm90_tuning<{args}>{base}\n"
        f"{{\n{f'  // {comment}' if comment else ''}\n{members}}};\n"
    )
