"""The way from databases to a plan, for all commands that plan."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from policygen.cli.db import tell
from policygen.cli.options import STORE, parse_axes, parse_regex
from policygen.cli.plan_options import options_of, rules_of
from policygen.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policygen.cli.asking import Tree
    from policygen.cli.inputs import Inputs
    from policygen.model.cub import Cub
    from policygen.model.effect import Effect
    from policygen.model.marks import Marked
    from policygen.model.plan import Action, Options, Plan
    from policygen.model.results import DbTop, Rules, ScoredWorkload
    from policygen.model.tuning import TuningHeader
    from policygen.planning.cases import Case
    from policygen.proof.oracle import Compiler
    from policygen.results.together import Together


Made = TypeVar("Made", "Action", "ScoredWorkload")


@dataclass(frozen=True, slots=True)
class Work:
    """A plan, the tree that it is for, and the compiler that knows it."""

    plan: "Plan"
    tree: "Tree"
    data: Mapping[str, bytes]
    compiler: "Compiler"


def open_tree(
    cub: "Cub", names: "Sequence[str]" = (), *, quiet: bool
) -> "tuple[Tree, dict[str, bytes], Compiler]":
    """A tree with its headers' bytes and a compiler for it."""
    from policygen.cli.asking import read_tree
    from policygen.errors import Problems

    found = read_tree(cub, names)
    if found.errors:
        raise Problems(found.errors)
    return found, *open_compiler(found, quiet=quiet)


def open_compiler(found: "Tree", *, quiet: bool) -> "tuple[dict[str, bytes], Compiler]":
    """The bytes of a tree's headers as they are, and a compiler for it."""
    from policygen.source.files import read_bytes

    data = {name: read_bytes(path) for name, path in found.paths.items()}
    headers = {header.name: header for header in found.headers}
    return data, compiler_for(found, headers, data, quiet=quiet)


def compiler_for(
    found: "Tree",
    headers: "Mapping[str, TuningHeader]",
    data: Mapping[str, bytes],
    *,
    quiet: bool,
) -> "Compiler":
    """The compiler, for a tree whose headers hold some data."""
    from policygen.bindings.load import bound
    from policygen.cli.asking import compile_progress
    from policygen.proof.oracle import Compiler
    from policygen.proof.sites import marked_members, with_new_families
    from policygen.proof.toolchain import find_toolchain
    from policygen.source.marks import mark_header, mark_returns
    from policygen.source.scan import read_changed

    members = marked_members(bound(found.cub.version), "specializations")

    known: dict[tuple[str, bytes], Marked] = {}

    def marked(name: str, content: bytes) -> "Marked":
        same = content == data[name]
        header = headers[name] if same else read_changed(found.paths[name], content)
        if found.cub.dialect == "selectors":
            return mark_returns(header, content)
        return mark_header(header, content, with_new_families(members, header))

    def mark(wanted: Mapping[str, bytes]) -> "dict[str, Marked]":
        missing = [item for item in wanted.items() if item not in known]
        # clang parses outside of the interpreter's lock.
        with ThreadPoolExecutor() as pool:
            known.update(zip(missing, pool.map(lambda item: marked(*item), missing), strict=True))
        return {name: known[name, content] for name, content in wanted.items()}

    progress = compile_progress(quiet=quiet)
    return Compiler(found.cub, headers, data, find_toolchain(), mark, progress)


def applied_effect(
    plan: "Plan",
    found: "Tree",
    headers: "Mapping[str, TuningHeader]",
    before: Mapping[str, bytes],
    now: Mapping[str, bytes],
    *,
    quiet: bool,
) -> "Effect":
    """Whether a plan that is applied has its effect; `headers` are those of before."""
    from policygen.cli.legacy import effect_of

    compiler = replace(compiler_for(found, headers, before, quiet=quiet), replaced=before)
    return effect_of(plan.model_copy(update={"cub": found.cub}), found, compiler, now, quiet=quiet)


def write_file(path: Path, data: bytes) -> None:
    """Writes a file that the user named."""
    from policygen.paths import write_atomically

    try:
        write_atomically(path, data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class Ranked:
    """What was given, and what is best in it."""

    files: "Inputs"
    top: "DbTop"
    rules: "Rules"
    left_out: "tuple[ScoredWorkload, ...]" = ()
    """Workloads that -R and -a leave out: what they say of an entry still counts."""

    def workloads(self, version: str) -> "tuple[ScoredWorkload, ...]":
        """What is asked for, and what may share an entry with it."""
        from policygen.planning.measured import related

        asked = self.top.workloads
        return (*asked, *related(asked, self.left_out, version))


@contextmanager
def ranked(given: Mapping[str, Any]) -> "Iterator[Ranked]":
    """The variants of databases, while these are open."""
    from policygen.cli.inputs import open_inputs
    from policygen.results.asked import split
    from policygen.results.choose import held_back
    from policygen.results.top import rank

    if not given["files"]:
        raise InputError("no database is given", "Name one: --db cccl_meta_bench.db")
    rules = rules_of(given)
    confirm = given["confirm"]
    with open_inputs(given["files"], given["benches"], given["base"], confirm) as files:
        top = rank(
            files.databases,
            top=rules.candidates + 1,
            rules=rules,
            declared=files.declared,
            confirm_with=files.confirm,
        )
        tell(top.warnings)
        pattern, axes = parse_regex(given["regex"]), parse_axes(given["axes"])
        asked, left_out = split(top.workloads, pattern, axes)
        if not asked:
            raise InputError("nothing matches", "See what there is: policygen db info DB...")
        written = tuple(held_back(one, rules) for one in asked)
        yield Ranked(files, top.model_copy(update={"workloads": written}), rules, left_out)


def make_plan(given: Mapping[str, Any], *, prove: bool, quiet: bool) -> Work:
    """From databases to a plan."""
    options = options_of(given)
    with ranked(given) as results:
        return plan_for(results, options, given, prove=prove, quiet=quiet)


def work_again(plan: "Plan", cub: "Cub", *, quiet: bool) -> Work:
    """A plan that was kept: its edits are made again, and must be those that it has."""
    from policygen.cli.legacy import families_again
    from policygen.planning.again import again, check_decisions, check_same
    from policygen.planning.files import check_tree
    from policygen.planning.legacy import part
    from policygen.planning.memory import remembered
    from policygen.planning.places import Sources
    from policygen.planning.plan import Planner

    check_decisions(plan)
    names = _headers(plan.results, cub.version)
    found, data, compiler = open_tree(cub, names, quiet=quiet)
    check_tree(plan, data)
    planner = Planner(
        Sources(found.cub, compiler.headers, data),
        plan.options,
        compiler,
        remembered(plan.joint),
        prove=False,
        spaces=plan.spaces,
    )
    made = again(planner, part(plan, legacy=False), plan.results)
    work = Work(made, found, data, compiler)
    if plan.options.legacy == "update" and found.cub.dialect == "selectors":
        made = families_again(work, planner, plan, quiet=quiet)
    check_same(plan, made)
    # What it says of files and reasons is of where it was made.
    told = {"actions": plan.actions, "remarks": plan.remarks}
    return replace(work, plan=made.model_copy(update=told))


def plan_for(
    results: Ranked, options: "Options", given: Mapping[str, Any], *, prove: bool, quiet: bool
) -> Work:
    """A plan for one architecture."""
    from policygen.cli.legacy import with_families
    from policygen.cli.opening import open_cub
    from policygen.planning.bases import base_remarks
    from policygen.planning.places import Sources
    from policygen.planning.plan import Planner
    from policygen.results.asked import NOT_ASKED

    cub = open_cub(given["cub"], given.get("store", STORE), whole=True)
    workloads = results.workloads(cub.version)
    names = _headers(workloads, cub.version)
    found, data, compiler = open_tree(cub, names, quiet=quiet)
    planner = Planner(
        Sources(found.cub, compiler.headers, data),
        options,
        compiler,
        _together(results.files, options.rules),
        prove=prove,
        spaces=results.files.spaces,
    )
    plan = planner.plan(workloads)
    remarks = base_remarks(plan, found.cub.version, _bases(found.cub, given, plan, quiet=quiet))
    remarks += served(plan, compiler)
    work = Work(plan, found, data, compiler)
    plan = with_families(work, planner, workloads, quiet=quiet)
    made = {str(path): names for path, names in results.files.made.items()}
    actions = tuple(_named(one, made) for one in plan.actions if one.reason != NOT_ASKED)
    if not prove and plan.edits:
        remarks.append("what the change does, and what later architectures inherit, was not asked")
    told = {
        "actions": actions,
        "results": tuple(_named(one, made) for one in plan.results),
        "remarks": (*remarks, *plan.remarks),
    }
    return replace(work, plan=plan.model_copy(update=told))


def _named(one: Made, made: "Mapping[str, tuple[str, ...]]") -> Made:
    """With the files that the user gave, where a database was made of them."""
    names = tuple(name for path in one.databases for name in made.get(path, (path,)))
    return one.model_copy(update={"databases": names})


def served(plan: "Plan", compiler: "Compiler") -> list[str]:
    """Later architectures that have no policy of their own: they get what is written, too."""
    from policygen.bindings.archs import archs
    from policygen.model.arch import arch_number
    from policygen.model.branches import own

    target = arch_number(plan.options.arch)
    written = {(a.target.header, a.target.namespace) for a in plan.actions if a.target and a.after}
    found: dict[tuple[str, str], list[str]] = {}
    for file in plan.files if not plan.policies else ():
        header = compiler.headers[file.path]
        if plan.cub.dialect == "selectors":
            later = [
                a
                for a in archs()
                if arch_number(a) > target and not own(arch_number(a), header.selectors, target)
            ]
            if later:
                what = f"what is returned for {plan.options.arch}"
                found.setdefault((what, ", ".join(later)), []).append(file.path)
            continue
        for chain in header.chains:
            numbers = [arch_number(policy.arch) for policy in chain.policies]
            if target not in numbers or (file.path, chain.namespace) not in written:
                continue
            end = min((n for n in numbers if n > target), default=1 << 16)
            later = [a for a in archs() if target < arch_number(a) < end]
            if later:
                policy = next(p.name for p in chain.policies if arch_number(p.arch) == target)
                found.setdefault((policy, ", ".join(later)), []).append(file.path)
    return [
        f"{policy} serves {later}, too ({', '.join(dict.fromkeys(headers))}): they get what is"
        " written"
        for (policy, later), headers in found.items()
    ]


def _headers(results: "Sequence[ScoredWorkload]", version: str) -> "tuple[str, ...]":
    """The headers that decide the benchmarks; all where a benchmark is not bound."""
    from policygen.bindings.load import bound

    wanted = {workload.algorithm for workload in results}
    names = set()
    for algorithm in bound(version):
        sites = {b.site for b in algorithm.benchmarks if b.name in wanted}
        names |= {site.header for site in algorithm.sites if site.name in sites}
    return tuple(sorted(names))


def chooser(files: "Inputs", rules: "Rules") -> "Callable[[Sequence[ScoredWorkload]], Together]":
    """Chooses one variant for several workloads."""
    from policygen.results.together import choose_together

    return lambda wanted: choose_together(
        files.databases, wanted, rules, files.declared, files.confirm
    )


def _together(files: "Inputs", rules: "Rules") -> "Callable[[Sequence[Case]], Together]":
    choose = chooser(files, rules)
    return lambda cases: choose([case.measurement.scored for case in cases])


def _bases(
    cub: "Cub", given: Mapping[str, Any], plan: "Plan", *, quiet: bool
) -> "dict[str, Compiler]":
    """The trees that were measured, by version, as far as they are at hand."""
    from policygen import tree
    from policygen.bindings.recorded import version_of
    from policygen.cli.asking import read_tree
    from policygen.cli.resolve import other_tree

    found: dict[str, Compiler] = {}
    for version in sorted({version_of(a.cccl) for a in plan.actions if a.before is not None}):
        if given["measured_on"] is not None:
            other = other_tree(cub, given["measured_on"])
        elif version == cub.version:
            continue
        else:
            try:
                other = tree.find(version, Path.cwd())
            except InputError:
                continue
        _, found[version] = open_compiler(read_tree(other), quiet=quiet)
    return found
