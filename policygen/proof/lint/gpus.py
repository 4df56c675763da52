"""Whether an entry's numbers were measured on a GPU that selects it."""

import re
from collections.abc import Iterator
from functools import cache

from policygen.bindings.archs import gpu_archs
from policygen.model.arch import arch_number, parse_arch
from policygen.model.base import Span
from policygen.model.tuning import Family
from policygen.proof.lint.subject import Remark, Subject

# "scores from B200", "tuned on an H100", "measured with sm_90"
_MEASURED = (
    r"\b(?:tuned|tunings?|measured|measurements?|benchmarked|scores?|results?|ran|run)\s+"
    r"(?:(?:is|are|was|were|taken|comes?)\s+)*(?:on|for|from|with|of)\s+(?:an?\s+|the\s+)?"
)
# What is said about another GPU on purpose: "like H100", "todo: tune on B200", "falls back to …"
_NO_CLAIM = re.compile(
    r"\b(?:not|no|n[o']t|never|todo|fixme|same|like|as|than|unlike|copied|copy|inherits?|fall\w*"
    r"|default\w*|regress\w*|slower|faster|worse|better|also|instead|untuned|re-?tune|kept|keeps?"
    r"|still|only)\b",
    re.IGNORECASE,
)


def other_gpu(subject: Subject) -> Iterator[Remark]:
    """Scores count for the GPU that they come from: NVIDIA/cccl#8611 had B200's for sm120."""
    entry, family = subject.entry, subject.family
    for remark in entry.remarks:
        match = _claims().search(remark)
        if match is None or _NO_CLAIM.search(remark):
            continue
        word = match[match.lastindex or 0]
        gpu, arch = _named(word)
        if not _selects(arch, family, subject.families):
            yield Remark(
                _comments(subject),
                f"the comment names {gpu}, which never selects {family.name}",
                word,
            )


@cache
def _claims() -> re.Pattern[str]:
    """`B200` and `tuned on B200` claim to be of it; an architecture does with the words alone."""
    names = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in gpu_archs())
    return re.compile(
        rf"(?:^\W*|{_MEASURED})(?:NVIDIA\s+)?({names})\b|{_MEASURED}(sm_?\d{{2,3}})\b",
        re.IGNORECASE,
    )


def _named(word: str) -> tuple[str, str]:
    """What is named, in words, and its architecture."""
    squeezed = " ".join(word.upper().split())
    for name, arch in gpu_archs().items():
        if name.upper() == squeezed:
            return f"{name}, an {arch} GPU", arch
    arch = parse_arch(word)
    return arch, arch


def _selects(gpu: str, family: Family, families: tuple[Family, ...]) -> bool:
    """Whether a GPU takes this family: the newest that is no newer than itself."""
    own, number = arch_number(family.arch), arch_number(gpu)
    place = (family.header, family.namespace)
    newer = (arch_number(f.arch) for f in families if (f.header, f.namespace) == place)
    return own <= number and not any(own < other <= number for other in newer)


def _comments(subject: Subject) -> Span:
    """From the comment above an entry to its end: what a remark stands in has no span."""
    entry = subject.entry
    above = entry.comment_span
    return Span(above.start, entry.span.end) if above else entry.span
