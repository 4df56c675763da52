"""A review that was saved, and what was proved and measured besides of the same tree."""

from collections.abc import Mapping
from pathlib import Path

from policygen.app.documents import Saved, read_document
from policygen.errors import InputError
from policygen.model.base import Document
from policygen.model.cub import Cub
from policygen.model.effect import Effect
from policygen.model.performance import VerifyPerformance
from policygen.model.review import Review
from policygen.model.sass import VerifySass

Proof = Effect | VerifySass | VerifyPerformance


def read_review(path: Path) -> Review:
    """A review that was saved."""
    return _read(path, Review)


def read_proofs(
    effect: str | None, sass: str | None, performance: str | None = None
) -> dict[str, Document]:
    """What `verify-…` printed; read first, for a review takes its time."""
    kinds: dict[str, tuple[str | None, type[Document]]] = {
        "effect": (effect, Effect),
        "sass": (sass, VerifySass),
        "performance": (performance, VerifyPerformance),
    }
    return {n: _read(Path(file), kind) for n, (file, kind) in kinds.items() if file is not None}


def with_proofs(review: Review, proofs: Mapping[str, Document]) -> Review:
    """A review with what was proved and measured besides; of another tree it is refused."""
    remarks = [*review.remarks]
    for document in proofs.values():
        assert isinstance(document, Proof)
        if document.cub is not None and not _same_tree(review, document, document.cub):
            remarks.append(
                f"whether {_command(document)} was asked about this very tree is not known"
            )
    return review.model_copy(update={**proofs, "remarks": tuple(dict.fromkeys(remarks))})


def _same_tree(review: Review, proof: Proof, cub: Cub) -> bool:
    """Whether it is known that both are of one tree; another one is refused."""
    own = review.cub.title
    others = {cub.title} - {own}
    if isinstance(proof, VerifyPerformance):
        others |= {proof.after} - {own}
    known = bool(review.content and proof.content)
    if not others and known and review.content != proof.content:
        others = {f"another {own}"}
    if others:
        command = _command(proof)
        raise InputError(
            f"what `{command}` was asked about is {', '.join(sorted(others))}, and not the {own}"
            " that is reviewed",
            f"Run `{command} --json` on the tree that is reviewed.",
        )
    return known


def _command(proof: Proof) -> str:
    """Which one prints such a document."""
    return {
        "policygen/effect/1": "verify-effect",
        "policygen/verify-sass/1": "verify-sass",
        "policygen/verify-performance/1": "verify-performance",
    }[proof.format]


def _read(path: Path, kind: type[Saved]) -> Saved:
    """A document that was saved."""
    wanted = kind.model_fields["format"].default
    return read_document(path, kind, wanted, "Save it again with this policygen.")
