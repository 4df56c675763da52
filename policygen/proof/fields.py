"""All fields of a policy, by the names that headers give them."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from policygen.bindings.expected import selected_path
from policygen.model.bindings import Site
from policygen.model.selection import WHOLE, PolicyFields
from policygen.proof import answers
from policygen.proof.probe import Asked

Aggregates = Mapping[str, tuple[tuple[str, str], ...]]
# "128" of "MemBoundScaling<128, 24, long>"; not "(BlockScanAlgorithm)2"
_COUNT = re.compile(r"(?<![\w)])\d+")


def policy_fields(asked: Asked, answer: str, told: Collection[str]) -> PolicyFields | None:
    """Reads what the compiler tells of a whole policy; none where it cannot be taken apart.

    `told` are the values that are told by their own names.
    """
    if not answer:
        return None
    if not asked.site.is_selector:
        return PolicyFields({WHOLE: _scaled(answers.type_name(answer))}, frozenset())
    name, numbers = answers.fields(answer)
    if numbers is None:
        return None
    paths = tuple(_leaves(asked.aggregates, name))
    if len(paths) != len(numbers):
        paths = tuple(f"{name}[{place}]" for place in range(len(numbers)))
    return PolicyFields(dict(zip(paths, numbers, strict=True)), _shown(asked.site, told))


@lru_cache(maxsize=4096)
def _scaled(name: str) -> str:
    """A type without the counts that its scaling makes others of: several come to the same."""
    return _COUNT.sub("·", name) if "Scaling<" in name else name


def _leaves(aggregates: Aggregates, name: str, within: str = "") -> Iterator[str]:
    for field, of in aggregates.get(name, ()):
        inner = of.rpartition("::")[2]
        if inner in aggregates and inner != name:
            yield from _leaves(aggregates, inner, f"{within}{field}.")
        else:
            yield f"{within}{field}"


@lru_cache(maxsize=256)
def _shown_paths(policy: str, texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(path for text in texts if (path := selected_path(policy, text)))


def _shown(site: Site, told: Collection[str]) -> frozenset[str]:
    """The paths that the values show which are told."""
    texts = tuple(text for name, text in site.values.items() if name in told)
    return _shown_paths(site.policy, (*texts, *(site.delay or ())))
