"""All rules, by name."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.model.cub import Cub
from policygen.model.lint import RuleName, Severity
from policygen.proof.lint import duplicates, gpus, inherited, labels, memory, threads, vector
from policygen.proof.lint.subject import Remark, Subject


@dataclass(frozen=True, slots=True)
class Rule:
    """A check of one entry."""

    name: RuleName
    severity: Severity
    summary: str
    check: Callable[[Subject], Iterable[Remark]]
    """Nothing for a rule about whole headers."""
    returns: bool = False
    """Whether it can judge guarded returns, too."""
    configs: bool = False
    """Whether it can judge rocPRIM's configs, too."""

    def judges(self, subject: Subject) -> bool:
        """Whether it has a meaning for an entry."""
        if not subject.returns:
            return self.configs
        return self.returns or subject.entry.kind != "branch"


RULES = (
    Rule(
        "items-not-divisible-by-vector",
        "warning",
        "the vector length does not divide the items per thread: CUB loads no vectors",
        vector.divisible,
        returns=True,
    ),
    Rule(
        "threads-not-warp-multiple",
        "error",
        "the threads are no multiple of 32",
        threads.warp_multiple,
        returns=True,
        configs=True,
    ),
    Rule(
        "threads-over-limit",
        "error",
        "more threads than a block can have, or fewer than a warp",
        threads.limit,
        returns=True,
        configs=True,
    ),
    Rule(
        "shared-memory-over-limit",
        "error",
        "a tile that is transposed does not fit into a block's shared memory",
        memory.fits,
        returns=True,
    ),
    Rule(
        "label-contradicts-values",
        "warning",
        "the variant in the comment has other values than the entry",
        labels.contradictions,
        returns=True,
    ),
    Rule(
        "label-stores-exponent",
        "warning",
        "the entry has the exponent where the variant in the comment means a power of two",
        labels.exponents,
        returns=True,
    ),
    Rule(
        "score-of-other-gpu",
        "warning",
        "the comment names a GPU that never selects the entry",
        gpus.other_gpu,
    ),
    Rule(
        "same-as-inherited",
        "note",
        "a value repeats what the base or the primary template gives",
        inherited.repeats,
    ),
    Rule(
        "duplicate-key",
        "error",
        "two live entries are for the same arguments",
        duplicates.duplicate,
        configs=True,
    ),
    Rule(
        "not-provable",
        "error",
        "a header depends on more than types and architecture, as a file's name or a macro",
        lambda _: (),
        configs=True,
    ),
)


def for_tree(rules: Iterable[Rule], cub: Cub) -> tuple[Rule, ...]:
    """Those that have a meaning for a tree; none is refused."""
    found = tuple(rule for rule in rules if cub.has_returns or rule.configs)
    if not found:
        known = ", ".join(rule.name for rule in RULES if rule.configs)
        message = f"no rule that is asked for judges {cub.called}'s headers"
        raise InputError(message, f"Those that do: {known}")
    return found


def choose(only: Iterable[str], off: Iterable[str]) -> tuple[Rule, ...]:
    """The rules that are asked for; a name that is none is refused."""
    only, off = frozenset(only), frozenset(off)
    known = [rule.name for rule in RULES]
    if unknown := sorted((only | off) - set(known)):
        raise InputError(f"no rule is called {unknown[0]!r}", f"Rules: {', '.join(known)}")
    chosen = tuple(r for r in RULES if r.name not in off and (not only or r.name in only))
    if not chosen:
        raise InputError("every rule is switched off", f"Rules: {', '.join(known)}")
    return chosen
