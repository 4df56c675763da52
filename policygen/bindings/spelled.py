"""What a site reads of a policy, as a tree calls it: members had other names before, or none."""

import re
from collections.abc import Iterator, Mapping, Sequence

from policygen.bindings.shapes import Structs
from policygen.bindings.words import words
from policygen.model.bindings import Site

# policy.lookback_delay.kind, selected.lookahead.items_per_thread, other.algorithm
_PATH = re.compile(r"\b(policy|selected|other)((?:\.\w+)+)")
# TransformAlgorithm::prefetch
_ENUMERATOR = re.compile(r"(?<![\w:])([A-Z]\w+)::(\w+)")
Path = tuple[str, ...]


def renamed(site: Site, known: Structs, text: str) -> dict[str, str] | None:
    """What a tree calls otherwise, or has not; none where it does not have what a site reads.

    All members belong to one struct, which is what the policy selector returns.
    """
    paths = sorted(set(_paths(site)))
    best: dict[Path, Path | None] | None = None
    for root in known:
        found = _all(root, paths, known)
        if found and (best is None or _changes(found) < _changes(best)):
            best = found
    others = _enumerators(site, text)
    if best is None or others is None:
        return None
    told = {".".join(old): ".".join(new or ()) for old, new in best.items() if old != new}
    return {**told, **others}


def respelled(site: Site, told: Mapping[str, str]) -> Site:
    """A site with the names that a tree has; values that it has not are left out."""
    head = tuple(site.policy.split(".")) if site.policy else ()
    policy = told.get(site.policy, site.policy)
    cut = len(policy.split(".")) if policy else 0

    def path(match: re.Match[str]) -> str:
        parts = tuple(match[2].strip(".").split("."))
        inside = match[1] == "policy"
        full = (*head, *parts) if inside else parts
        for end in range(len(full), 0, -1):  # a delay is known by its own name alone
            if (known := told.get(".".join(full[:end]))) is not None:
                new = (*filter(None, known.split(".")), *full[end:])
                return ".".join([match[1], *(new[cut:] if inside else new)])
        return match[0]

    def text(one: str) -> str:
        one = _PATH.sub(path, one)
        return _ENUMERATOR.sub(lambda m: told.get(m[0], m[0]), one)

    def lost(one: str) -> bool:
        pairs = ((m[1], tuple(m[2].strip(".").split("."))) for m in _PATH.finditer(one))
        return any(
            told.get(".".join((*head, *p) if root == "policy" else p)) == "" for root, p in pairs
        )

    return site.model_copy(
        update={
            "policy": policy,
            "values": {name: text(one) for name, one in site.values.items() if not lost(one)},
            "types": {name: text(one) for name, one in site.types.items() if not lost(one)},
            "delay": tuple(map(text, site.delay)) if site.delay else None,
            "setup": tuple(map(text, site.setup)),
            "support": tuple(map(text, site.support)),
        }
    )


def _paths(site: Site) -> Iterator[Path]:
    """Each member that is read, from the selected policy on."""
    head = tuple(site.policy.split(".")) if site.policy else ()
    if head:
        yield head
    delay = [one.rpartition(".")[0] for one in site.delay or ()]
    told = (*site.values.values(), *site.types.values(), *delay, *site.setup)
    for match in (match for one in told for match in _PATH.finditer(one)):
        parts = tuple(match[2].strip(".").split("."))
        yield (*head, *parts) if match[1] == "policy" else parts


def _all(root: str, paths: Sequence[Path], known: Structs) -> dict[Path, Path | None]:
    """Each path as a struct has it; nothing where it lacks one."""
    found: dict[Path, Path | None] = {}
    for path in paths:
        ways = list(_ways(root, path, known))
        if not ways:
            return {}
        found[path] = min(ways, key=lambda way: (way is None, way != path, way or ()))
    kept = [way for path, way in found.items() if way and path]
    return found if kept else {}


def _ways(struct: str, path: Path, known: Structs) -> Iterator[Path | None]:
    """What a path can be called in a struct; none where older trees had nothing of the kind."""
    if not path:
        yield ()
        return
    name, *rest = path
    members = known.get(struct, {})
    for called in (name, *words().older.get(name, ())):
        if called in members:
            if not rest:
                yield (called,)
            elif members[called] in known:
                for way in _ways(members[called], tuple(rest), known):
                    yield None if way is None else (called, *way)
            else:  # a struct of another header
                yield (called, *rest)
        elif not called and name not in members:
            yield from _ways(struct, tuple(rest), known) if rest else (None,)


def _changes(found: Mapping[Path, Path | None]) -> int:
    return sum(old != new for old, new in found.items())


def _enumerators(site: Site, text: str) -> dict[str, str] | None:
    """The enumerators that have another name; none where a tree lacks their enumeration."""
    found = {}
    for match in (m for one in (*site.setup, *site.support) for m in _ENUMERATOR.finditer(one)):
        for called in (match[0], *words().older.get(match[0], ())):
            if re.search(rf"\b{called.partition('::')[0]}\b", text):
                if called != match[0]:
                    found[match[0]] = called
                break
        else:
            return None
    return found
