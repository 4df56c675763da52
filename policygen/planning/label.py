"""Where values come from, as the comment of an entry says it."""

from policygen.dialects.provenance import labelled
from policygen.model.plan import Options
from policygen.model.results import ScoredVariant
from policygen.planning.measured import gpu_name, numbers
from policygen.planning.places import PlacedResult


def label(variant: ScoredVariant, case: PlacedResult, options: Options) -> str:
    """The variant with its scores, and what was measured where that is asked for."""
    text = labelled(variant.variant, numbers(variant))
    if options.provenance == "scores":
        return text
    scored = case.measurement.scored
    choice = case.measurement.choice
    told = choice.origin if choice.variant == variant.variant else None
    score = {"shrunken": "score without luck", "confirmed": "score confirmed", None: None}[told]
    tool, cccl = f"CUDA {scored.ctk}", f"CCCL {scored.cccl}"
    origin = (gpu_name(scored.gpu), tool, cccl, options.date, score)
    return f"{text}  ({', '.join(part for part in origin if part)})"
