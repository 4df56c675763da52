"""Asks the compiler what a tree selects: values, the entries that they come from, and keys."""

from collections.abc import Sequence

from policygen.bindings.load import types
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.model.bindings import DelayConstructor
from policygen.model.marks import Marked
from policygen.model.selection import FamilyKey, Selected
from policygen.model.tuning import Value
from policygen.proof import answers
from policygen.proof.fields import policy_fields
from policygen.proof.host import ask_host
from policygen.proof.host_compiler import HostCompiler
from policygen.proof.probe import Asked, AskedTree, probe
from policygen.proof.selection import Selection
from policygen.proof.toolchain import Toolchain
from policygen.proof.unit import Workload, sized_roles
from policygen.steps import Progress

Row = tuple[str, ...]


def ask(
    tree: AskedTree,
    asked: Sequence[Asked],
    toolchain: Toolchain | HostCompiler,
    *,
    progress: Progress | None = None,
) -> Selection:
    """Asks for all workloads at once, in the order of the sites."""
    if isinstance(toolchain, HostCompiler):
        return ask_host(tree, asked, toolchain, progress=progress)
    told = probe(asked, tree, toolchain, progress=progress)
    rows: dict[tuple[Workload, str], Selected] = {}
    for each in asked:
        known: dict[tuple[Row | None, Row | None, object], Selected] = {}
        marked = tree.marked.get(each.site.header)
        for workload, arch in each.spots:
            plain, marks = (told.of(workload, arch, marked=m) for m in (False, True))
            if plain is None and marks is None:
                continue
            # Thousands of rows say the same few things.
            same = (plain, marks, id(workload.call))
            if same not in known:
                known[same] = _selected(each, workload, plain, marks, marked)
            rows[workload, arch] = known[same]
    return Selection(rows, told.errors, told.refused)


def _selected(
    asked: Asked, workload: Workload, plain: Row | None, marks: Row | None, marked: Marked | None
) -> Selected:
    whole, *named = plain or ("",)
    values, since = _values(asked, named)
    fields = policy_fields(asked, whole, values) if plain else None
    if marks is None or marked is None:
        return Selected(values, since=since, fields=fields)
    roles = sized_roles(workload.call, asked.families)
    mark, *told = marks
    told, sizes = told[: len(told) - len(roles)], told[len(told) - len(roles) :]
    number = marked.entry(answers.value(mark))
    entry = None if number is None else marked.entries[number]
    keys, traits, kinds = {}, {}, {}
    if asked.site.is_selector:
        traits = dict(zip(asked.traits, map(answers.value, told), strict=False))
        keys = {entry[0].name: FamilyKey((), entry, number or 0)} if entry else {}
    else:
        kinds = dict(zip(asked.site.values, answers.types(told[0]), strict=True))
        kinds |= dict.fromkeys(asked.site.types, "using")
        for (binding, _), text in zip(asked.families, told[1:], strict=True):
            key = answers.key(text)
            leads = None if key.entry < 0 else marked.entries[key.entry]
            keys[binding.name] = FamilyKey(key.args, leads, key.entry)
    in_bytes = {r: int(answers.value(size)) for r, size in zip(roles, sizes, strict=True)}
    return Selected(values, entry, keys, in_bytes, kinds, traits, number, since, fields)


def _values(asked: Asked, row: Sequence[str]) -> tuple[dict[str, Value], str | None]:
    """Reads the values of a policy, a delay as CUB's type, and since which arch it is the same."""
    site, since = asked.site, None
    if row and asked.since and site.is_selector:
        first, default = (answers.value(text) for text in row[-2:])
        row, since = row[:-2], None if default else f"sm{first}"
    names = [*site.values, *site.types]
    found = {name: answers.value(text) for name, text in zip(names, row, strict=False)}
    if row and site.delay:
        kind, delay, latency = (answers.value(text) for text in row[len(names) :])
        found[words().values.delay] = _delay(str(kind)).spelled(delay, latency)
    mine = site.used_by.get(str(found.get(words().values.algorithm)))
    # Of an algorithm that no binding knows nothing is left out: what is not shown is not compared.
    used = {} if mine is None else site.used_by
    others = {name for names in used.values() for name in names}.difference(mine or ())
    return {name: value for name, value in found.items() if name not in others}, since


def _delay(kind: str) -> DelayConstructor:
    for delay in types().delays:
        if delay.kind.strip("_") == kind.strip("_"):
            return delay
    raise InputError(f"no delay constructor is called {kind!r}", "Add it to types.toml.")
