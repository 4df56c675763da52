"""What `verify-sass` compares a tree with: an apply, a revision, a folder, or dumps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from policygen import tree
from policygen.app.applied import find_apply
from policygen.app.looking import looked
from policygen.app.session import Session
from policygen.app.trees import other_tree
from policygen.edit.worktree import uncommitted
from policygen.errors import InputError
from policygen.model.cub import Cub
from policygen.model.plan import Plan
from policygen.model.sass import DumpIndex
from policygen.proof.compilers import IN_PLACE
from policygen.proof.copied import copied
from policygen.proof.overlay import overlay
from policygen.proof.sass.dumps import Dumps, is_dumps, load
from policygen.tree.revision import open_revision


@dataclass(frozen=True, slots=True)
class Base:
    """The side before."""

    label: str
    cub: Cub | None = None
    """None where there are dumps alone."""
    replaced: Mapping[str, bytes] = field(default_factory=dict)
    """Tuning headers that it has with other content than the tree."""
    plan: Plan | None = None
    """What was applied since."""
    index: DumpIndex | None = None
    dumps: Dumps = field(default_factory=dict)

    @property
    def includes(self) -> tuple[str, ...]:
        """Its include folders; before them those of the headers that were replaced."""
        assert self.cub is not None
        if self.replaced and self.cub.library in IN_PLACE:
            return copied(self.cub, self.replaced), *self.cub.include_folders
        folders = (overlay(name, data) for name, data in sorted(self.replaced.items()))
        return *folders, *self.cub.include_folders


def find_base(session: Session, text: str | None) -> Base | None:
    """What is named; else what the last apply replaced; else the last commit; else nothing."""
    if text is None:
        return _default(session.cub, session.store)
    if is_dumps(Path(text)):
        index, dumps = load(Path(text))
        title = index.version if "@" in index.version else f"CUB {index.version}"
        return Base(f"dumps of {title}, {index.toolchain}, in {text}", index=index, dumps=dumps)
    other = other_tree(session, text)
    return Base(f"{other.title}, {text}", other)


def _default(found: Cub, store: Path) -> Base | None:
    if applied := find_apply(store, Path(found.root)):
        plan, before = applied
        label = f"before the apply for {plan.options.arch}: {', '.join(sorted(before))}"
        return Base(label, found, before, plan)
    if uncommitted(tree.tuning_headers(found)):
        return Base("HEAD", looked(open_revision(found, "HEAD")))
    return None


def no_base(store: Path) -> InputError:
    """Nothing to compare with."""
    return InputError(
        f"nothing was applied to the tree ({store}), and no tuning header has uncommitted edits",
        "Name what to compare with: --base REVISION, --base FOLDER, or --base VERSION",
    )
