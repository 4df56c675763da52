"""Queries the compiler for what a tree selects: values, entries, and keys."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from policygen.bindings.load import types
from policygen.bindings.variants import selected_path
from policygen.bindings.words import ladder, words
from policygen.errors import InputError, Problems
from policygen.libraries import part_of
from policygen.model.arch import arch_number
from policygen.model.bindings import DelayConstructor, Site
from policygen.model.selection import (
    WHOLE,
    FamilyKey,
    Policies,
    PolicyFields,
    Question,
    Selected,
    Whole,
)
from policygen.model.trees import Cub
from policygen.model.tuning import Marked, Value, leaf_paths
from policygen.model.workload import Point
from policygen.proof import answers
from policygen.proof.answers import spelled
from policygen.proof.probe import LibraryCompiler, QueriedTree, Selection, probe, workloads
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.proof.units import SiteQuery, Workload, sized_roles
from policygen.steps import Progress

Row = tuple[str, ...]


def ask(
    tree: QueriedTree,
    queries: Sequence[SiteQuery],
    toolchain: Toolchain | LibraryCompiler,
    *,
    progress: Progress | None = None,
) -> Selection:
    """Queries all workloads at once, in the order of the sites."""
    if isinstance(toolchain, LibraryCompiler):
        return toolchain.ask(tree, queries, progress)
    answered = probe(queries, tree, toolchain, progress=progress)
    rows: dict[tuple[Workload, str], Selected] = {}
    for query in queries:
        cached: dict[tuple[Row | None, Row | None, object], Selected] = {}
        marked = tree.marked.get(query.site.header)
        for workload, arch in query.spots:
            value_row, mark_row = (
                answered.rows.get((workload, arch, is_marked)) for is_marked in (False, True)
            )
            if value_row is None and mark_row is None:
                continue
            # Thousands of rows have the same few answers.
            cache_key = (value_row, mark_row, id(workload.call))
            if cache_key not in cached:
                cached[cache_key] = _selected(query, workload, value_row, mark_row, marked)
            rows[workload, arch] = cached[cache_key]
    return Selection(rows, answered.errors, answered.refused)


def _selected(
    query: SiteQuery,
    workload: Workload,
    value_row: Row | None,
    mark_row: Row | None,
    marked: Marked | None,
) -> Selected:
    policy_text, *value_texts = value_row or ("",)
    values, since = _values(query, value_texts)
    fields = policy_fields(query, policy_text, values) if value_row else None
    if mark_row is None or marked is None:
        return Selected(values, since=since, fields=fields)
    roles = sized_roles(workload.call, query.families)
    mark, *texts = mark_row
    texts, sizes = texts[: len(texts) - len(roles)], texts[len(texts) - len(roles) :]
    number = marked.entry(answers.value(mark))
    entry = None if number is None else marked.entries[number]
    keys, traits, kinds = {}, {}, {}
    if query.site.is_selector:
        traits = dict(zip(query.traits, map(answers.value, texts), strict=False))
        keys = {entry[0].name: FamilyKey((), entry, number or 0)} if entry else {}
    else:
        kinds = dict(zip(query.site.values, answers.types(texts[0]), strict=True))
        kinds |= dict.fromkeys(query.site.types, "using")
        for (binding, _), text in zip(query.families, texts[1:], strict=True):
            leads_to, args = answers.key(text)
            family_entry = None if leads_to < 0 else marked.entries[leads_to]
            keys[binding.name] = FamilyKey(args, family_entry, leads_to)
    in_bytes = {role: int(answers.value(size)) for role, size in zip(roles, sizes, strict=True)}
    return Selected(values, entry, keys, in_bytes, kinds, traits, number, since, fields)


def _values(query: SiteQuery, row: Sequence[str]) -> tuple[dict[str, Value], str | None]:
    """Reads the values of a policy, with CUB's type for a delay, and since which arch they hold."""
    site, since = query.site, None
    if row and query.since and site.is_selector:
        first, default = (answers.value(text) for text in row[-2:])
        row, since = row[:-2], None if default else f"sm{first}"
    names = [*site.values, *site.types]
    values = {name: answers.value(text) for name, text in zip(names, row, strict=False)}
    if row and site.delay:
        kind, delay, latency = (answers.value(text) for text in row[len(names) :])
        values[words().values.delay] = _delay(str(kind)).spelled(delay, latency)
    used_names = site.used_by.get(str(values.get(words().values.algorithm)))
    # If no binding knows the algorithm, drop nothing: dropped values are not compared.
    used = {} if used_names is None else site.used_by
    unused_names = {name for names in used.values() for name in names}.difference(used_names or ())
    return {name: value for name, value in values.items() if name not in unused_names}, since


def _delay(kind: str) -> DelayConstructor:
    for delay in types().delays:
        if delay.kind.strip("_") == kind.strip("_"):
            return delay
    remedy = "Add it to schemas/bindings/types.toml."
    raise InputError(f"unknown delay constructor {kind!r}", remedy)


# Queries for whole policies: of CUB's own selectors, and of a user's.


def ask_policies(
    questions: Sequence[Question],
    tree: QueriedTree,
    toolchain: Toolchain,
    *,
    archs: Sequence[str] | None = None,
    points: Collection[Point] | None = None,
    std: int = 17,
    progress: Progress | None = None,
) -> Policies:
    """Queries what selectors return for workloads of their benchmarks: for some points, or all."""
    ordered = tuple(sorted(archs or ladder(), key=arch_number))
    queries = []
    for question in questions:
        all_points = workloads(question.benchmark, tree.version)
        chosen = (point for point in all_points if points is None or point.point in points)
        queries.append(SiteQuery(_site_of_selector(question), tuple(chosen), ordered))
    answered = probe(queries, tree, toolchain, progress=progress, std=std)
    if answered.errors:
        raise Problems(answered.errors)
    policies = {}
    for question, query in zip(questions, queries, strict=True):
        for workload, arch in query.spots:
            row = answered.rows[workload, arch, False]
            policies[workload.point, arch] = _whole_policy(question, row)
    return policies


def _site_of_selector(question: Question) -> Site:
    """Replaces CUB's selector by the question's, and the site's values by what to ask."""
    site = question.site
    values, types = _expressions(question)
    asked_for = {"hub": question.selector, "values": values, "types": types}
    asked_for |= {"includes": (*site.includes, *question.includes)}
    nothing_else = {"policy": "", "setup": (), "delay": None, "untuned": None}
    return site.model_copy(update={**asked_for, **nothing_else})


def _expressions(question: Question) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the values and the types to ask for, each by a name of its own."""
    constants = question.benchmark.constants
    values = {field: f"selected.{field}" for field in question.fields}
    values |= {role: role for role in question.roles if role in constants}
    values |= {f"sizeof {role}": f"int{{sizeof({role})}}" for role in question.sized}
    types = {role: role for role in question.roles if role not in constants}
    for number, (text, is_type) in enumerate(question.arguments):
        if is_type:
            types[f"argument {number}"] = text
        else:
            values[f"argument {number}"] = f"({text})"
    return values, types


def _whole_policy(question: Question, row: Sequence[str]) -> Whole:
    values, types = _expressions(question)
    texts = map(spelled, row[1:])  # after the whole policy
    answer = dict(zip([*values, *types], texts, strict=True))
    return Whole(
        {field: answer[field] for field in question.fields},
        {role: answer[role] for role in question.roles},
        {role: int(answer[f"sizeof {role}"]) for role in question.sized},
        tuple(answer[f"argument {number}"] for number in range(len(question.arguments))),
    )


# "128" of "MemBoundScaling<128, 24, long>"; not "(BlockScanAlgorithm)2"
_COUNT = re.compile(r"(?<![\w)])\d+")


# All fields of a policy, by the names in the headers.


def policy_fields(
    query: SiteQuery, answer: str, value_names: Collection[str]
) -> PolicyFields | None:
    """Reads the fields of a whole policy; None if the compiler cannot take it apart.

    `value_names` are the values that are reported under their own names.
    """
    if not answer:
        return None
    if not query.site.is_selector:
        return PolicyFields({WHOLE: _without_scaled_counts(answers.type_name(answer))}, frozenset())
    name, numbers = answers.fields(answer)
    if numbers is None:
        return None
    paths = tuple(leaf_paths(query.aggregates, name))
    if len(paths) != len(numbers):
        paths = tuple(f"{name}[{index}]" for index in range(len(numbers)))
    return PolicyFields(dict(zip(paths, numbers, strict=True)), _shown(query.site, value_names))


@lru_cache(maxsize=4096)
def _without_scaled_counts(name: str) -> str:
    """Removes the counts from a scaled type: different counts can scale to the same policy."""
    return _COUNT.sub("·", name) if "Scaling<" in name else name


@lru_cache(maxsize=256)
def _shown_paths(policy: str, texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(path for text in texts if (path := selected_path(policy, text)))


def _shown(site: Site, value_names: Collection[str]) -> frozenset[str]:
    """Returns the paths of the fields that these values already show."""
    texts = tuple(text for name, text in site.values.items() if name in value_names)
    return _shown_paths(site.policy, (*texts, *(site.delay or ())))


# The compiler of a tree's library that answers queries.


@dataclass(frozen=True, slots=True)
class Queries:
    """How a library besides CUB is queried."""

    find_compiler: Callable[[], LibraryCompiler]
    replaces_files: bool
    """Whether the compiler gets changed files in place of those of the tree, because its headers
    include each other by path; nvcc gets folders in front of the tree's."""


def compiler_of(cub: Cub) -> Toolchain | LibraryCompiler:
    """Finds the compiler for a tree."""
    queries = part_of(cub.library, Queries)
    return queries.find_compiler() if queries else find_toolchain()


def replaces_files(cub: Cub) -> bool:
    """Tells whether a tree's compiler gets changed files in place of those of the tree."""
    queries = part_of(cub.library, Queries)
    return queries is not None and queries.replaces_files
