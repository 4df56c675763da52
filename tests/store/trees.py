"""Small trees of files to change, and what became of them."""

from datetime import UTC, datetime

from policygen.store.applies import apply, end_interrupted
from policygen.store.journal import Journal
from policygen.store.replacement import Change
from policygen.store.targets import real, tree_lock

WHEN = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
CONTENTS = (b"one\r\ntwo\r\n", b"\xef\xbb\xbfthree\nfour", b"", b"\xff\x00\n")


def recover(store, root):
    """What an apply or an undo does first: it ends the interrupted writes to a tree."""
    if not store.exists():
        return ()
    with tree_lock(root), Journal.open(store) as journal:
        return end_interrupted(journal, real(root))


class Tree:
    """A folder with files, how each is now and shall be, and the store beside it."""

    def __init__(self, folder, count=3):
        self.root = folder / "tree"
        self.store = folder / "policygen.db"
        self.changes = []
        for n in range(count):
            path = self.root / f"cub/f{n % 2}/tuning_{n}.cuh"
            path.parent.mkdir(parents=True, exist_ok=True)
            before = CONTENTS[n % len(CONTENTS)]
            path.write_bytes(before)
            path.chmod(0o640)
            self.changes.append(Change(path, before, b"new\r\n" * 1000 + before))

    @property
    def paths(self):
        return [change.path for change in self.changes]

    @property
    def old(self):
        return [change.before for change in self.changes]

    @property
    def new(self):
        return [change.after for change in self.changes]

    @property
    def now(self):
        return [path.read_bytes() for path in self.paths]

    def others(self):
        """Files that do not belong there, those that are staged for one."""
        return sorted(p for p in self.root.rglob("*") if p.is_file() and p not in set(self.paths))

    def apply(self, changes=None, title="scan on sm100", store=None):
        changes = self.changes if changes is None else changes
        return apply(changes, store or self.store, self.root, title, "{}", WHEN)

    def further(self, data=b"newer"):
        """Changes on top of those that were applied."""
        return [Change(c.path, c.after, data + c.after) for c in self.changes]
