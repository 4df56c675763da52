"""Kills applies, undos and recoveries at random, with edits in between; nothing may be lost.

python -m tests.fuzz.kills --count 300 --seed 1
"""

import random
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

from policygen.errors import PolicygenError
from policygen.store.applies import complete, undo
from policygen.store.journal import history
from policygen.store.replacement import Change
from tests.fuzz import command
from tests.store.killing import killed_at
from tests.store.trees import WHEN, Tree, recover

LONGEST = 30
"""More operations than an apply of four files has."""


class Situation:
    """A tree, what each of its files may hold, and what somebody wrote into it by hand."""

    def __init__(self, folder, rng):
        self.rng = rng
        self.tree = Tree(folder, rng.randint(1, 4))
        self.typed = set()
        self.allowed = {change.path: {change.before} for change in self.tree.changes}

    def act(self):
        """What is done, and killed: a function without arguments."""
        tree, rng = self.tree, self.rng
        kinds = ["apply", "apply", "undo", "recover", "complete"]
        kind = rng.choice(kinds) if history(tree.store) else "apply"
        if kind == "undo":
            return kind, lambda: undo(tree.store, rng.choice([None, tree.root]), 1, WHEN)
        if kind == "recover":
            return kind, lambda: recover(tree.store, tree.root)
        if kind == "complete":
            return kind, lambda: complete(tree.store, tree.root)
        changes = []
        for path in tree.paths:
            if path.exists() and rng.random() < 0.8:
                now = path.read_bytes()
                new = rng.randbytes(rng.choice([0, 1, 5000])) + now[:100]
                changes.append(Change(path, now, new))
                self.allowed[path] |= {now, new}
                self.typed -= {now}  # the journal has it
        return kind, lambda: tree.apply(changes)

    def edit(self):
        """Somebody saves a file."""
        path = self.rng.choice(self.tree.paths)
        data = b"typed %d" % self.rng.randrange(10**9)
        if path.exists():
            self.typed -= {path.read_bytes()}  # he replaces it himself
            path.write_bytes(data)
            self.typed.add(data)
            self.allowed[path].add(data)

    def check(self, *, ended):
        """Each file holds what somebody wanted; what was typed has a name; the rest is tidy."""
        everything = {p: p.read_bytes() for p in self.tree.root.rglob("*") if p.is_file()}
        for path in self.tree.paths:
            if ended or path in everything:
                assert everything[path] in self.allowed[path], path
        assert self.typed <= set(everything.values()), "an edit is lost"
        if ended:
            others = set(everything) - set(self.tree.paths)
            assert not others, others
        outside = {path.name for path in self.tree.root.parent.iterdir()}
        assert outside <= {"tree", "policygen.db", "policygen.db-journal"}


def run(count, seed):
    """So many kills; how they came about."""
    rng = random.Random(seed)
    found = Counter()
    with tempfile.TemporaryDirectory() as name:
        number = 0
        while found["kills"] < count:
            number += 1
            _once(Situation(Path(name).resolve() / str(number), rng), found)
    return found


def _once(situation, found):
    tree, rng = situation.tree, situation.rng
    for _ in range(rng.randint(1, 4)):
        kind, action = situation.act()

        def tried(action=action):
            with suppress(PolicygenError):
                action()

        if killed_at(rng.randint(1, LONGEST), tried, torn=rng.random() < 0.5):
            found["kills"] += 1
            found[f"{kind} killed"] += 1
        situation.check(ended=False)
        if rng.random() < 0.3:
            situation.edit()
            found["edits"] += 1
    while ended := recover(tree.store, tree.root):
        found.update(f"{one.kind} {one.outcome}" for one in ended)
    situation.check(ended=True)
    with suppress(PolicygenError):
        undo(tree.store, tree.root, 1, WHEN)
        found["undone afterwards"] += 1
    situation.check(ended=True)


if __name__ == "__main__":
    command.main(run, __doc__, 300)
