"""The best variants of databases, for all that writes them somewhere."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from policygen.app.inputs import Inputs, ResultFiles, nothing_matches, open_inputs
from policygen.app.notes import Note, tell_warnings
from policygen.errors import InputError
from policygen.model.results import DbTop, Rules, ScoredWorkload
from policygen.planning.measured import related
from policygen.results.asked import split
from policygen.results.choose import Can, held_back
from policygen.results.next_best import choose_next
from policygen.results.together import Together, choose_together
from policygen.results.top import rank


@dataclass(frozen=True, slots=True)
class Ranked:
    """What was given, and what is best in it."""

    files: Inputs
    top: DbTop
    rules: Rules
    left_out: tuple[ScoredWorkload, ...] = ()
    """Workloads that -R and -a leave out: what they say of an entry still counts."""

    def workloads(self, version: str) -> tuple[ScoredWorkload, ...]:
        """What is asked for, and what may share an entry with it."""
        asked = self.top.workloads
        return (*asked, *related(asked, self.left_out, version))

    def choose(self, wanted: Sequence[ScoredWorkload]) -> Together:
        """Chooses one variant for several workloads."""
        files = self.files
        return choose_together(files.databases, wanted, self.rules, files.declared, files.confirm)

    def next_best(self, wanted: Sequence[ScoredWorkload], can: Can) -> Together:
        """Chooses again, of those that can be said."""
        files, rules = self.files, self.rules
        return choose_next(files.databases, wanted, can, rules, files.declared, files.confirm)


@contextmanager
def ranked(given: ResultFiles, rules: Rules, note: Note) -> Iterator[Ranked]:
    """The variants of databases, while these are open."""
    if not given.files:
        raise InputError("no database is given", "Name one: --db cccl_meta_bench.db")
    with open_inputs(given) as files:
        top = rank(
            files.databases,
            top=rules.candidates + 1,
            rules=rules,
            declared=files.declared,
            confirm_with=files.confirm,
        )
        tell_warnings(top.warnings, note)
        told = [given.told(one) for one in top.workloads]
        asked, left_out = split(told, given.where.pattern, given.where.values)
        if not asked:
            raise nothing_matches(given.where, given.files)
        written = tuple(held_back(one, rules) for one in asked)
        yield Ranked(files, top.model_copy(update={"workloads": written}), rules, left_out)
