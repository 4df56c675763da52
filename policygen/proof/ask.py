"""Asks the compiler what a tree selects: values, the entries that they come from, and keys."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from policygen.bindings.load import types
from policygen.bindings.variants import selected_path
from policygen.bindings.words import ladder, words
from policygen.errors import InputError, Problems
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, DelayConstructor, Site
from policygen.model.edits import Marked
from policygen.model.selection import WHOLE, FamilyKey, PolicyFields, Selected
from policygen.model.trees import Cub, Library
from policygen.model.tuning import Policies, Question, Value, Whole
from policygen.proof import answers
from policygen.proof.answers import spelled
from policygen.proof.probe import Asked, AskedTree, Selection, probe, workloads
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.proof.units import Workload, sized_roles
from policygen.rocprim.host import HostCompiler, ask_host, find_host_compiler
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


# Asks the compiler for whole policies: of CUB's own selectors, and of a user's.


def ask_policies(
    questions: Sequence[Question],
    tree: AskedTree,
    toolchain: Toolchain,
    *,
    archs: Sequence[str] | None = None,
    std: int = 17,
    progress: Progress | None = None,
) -> Policies:
    """Asks what selectors return for all workloads of their benchmarks."""
    ordered = tuple(sorted(archs or ladder(), key=arch_number))
    asked = [
        Asked(_site(question), workloads(question.benchmark, tree.version), ordered)
        for question in questions
    ]
    answered = probe(asked, tree, toolchain, progress=progress, std=std)
    if answered.errors:
        raise Problems(answered.errors)
    found = {}
    for question, each in zip(questions, asked, strict=True):
        for workload, arch in each.spots:
            row = answered.of(workload, arch)
            assert row is not None
            found[workload.point, arch] = _whole(question, row)
    return found


def _site(question: Question) -> Site:
    """Puts the selector in the place of CUB's, and all that is asked in that of its values."""
    site, benchmark = question.site, question.benchmark
    values = {field: f"selected.{field}" for field in question.fields}
    values |= {role: role for role in question.roles if role in benchmark.constants}
    values |= {f"sizeof {role}": f"int{{sizeof({role})}}" for role in question.sized}
    return site.model_copy(
        update={
            "hub": question.selector,
            "includes": (*site.includes, *question.includes),
            "policy": "",
            "setup": (),
            "values": values,
            "types": {role: role for role in _types(question.roles, benchmark)},
            "delay": None,
            "untuned": None,
        }
    )


def _types(roles: Sequence[str], benchmark: BenchmarkBinding) -> list[str]:
    return [role for role in roles if role not in benchmark.constants]


def _whole(question: Question, row: Sequence[str]) -> Whole:
    constants = [role for role in question.roles if role in question.benchmark.constants]
    names = [*question.fields, *constants, *question.sized]
    texts = [spelled(answer) for answer in row[1:]]  # behind the policy as a whole
    fields = dict(zip(question.fields, texts, strict=False))
    values = dict(zip(constants, texts[len(question.fields) :], strict=False))
    start = len(question.fields) + len(constants)
    sizes = dict(zip(question.sized, map(int, texts[start : len(names)]), strict=True))
    types = _types(question.roles, question.benchmark)
    values |= dict(zip(types, texts[len(names) :], strict=False))
    return Whole(fields, {role: values[role] for role in question.roles}, sizes)


Aggregates = Mapping[str, tuple[tuple[str, str], ...]]
# "128" of "MemBoundScaling<128, 24, long>"; not "(BlockScanAlgorithm)2"
_COUNT = re.compile(r"(?<![\w)])\d+")


# All fields of a policy, by the names that headers give them.


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


COMPILERS: Mapping[Library, Callable[[], Toolchain | HostCompiler]] = {
    "cub": find_toolchain,
    "rocprim": find_host_compiler,
}
IN_PLACE: frozenset[Library] = frozenset({"rocprim"})
"""Whose compilers take other content for files, where headers include each other by place."""


# The compiler that says what a library selects.


def compiler_of(cub: Cub) -> Toolchain | HostCompiler:
    """Finds the compiler for a tree."""
    return COMPILERS[cub.library]()
