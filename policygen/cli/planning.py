"""What `plan` and `apply` share: their options, and the way from databases to a plan."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from policygen.cli.db import chosen_rules, sources, tell
from policygen.cli.options import cub_option, filter_options, parse_archs, parse_axes, parse_regex
from policygen.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policygen.cli.asking import Tree
    from policygen.cli.inputs import Inputs
    from policygen.model.cub import Cub
    from policygen.model.marks import Marked
    from policygen.model.plan import Options, Plan
    from policygen.model.results import DbTop, Rules
    from policygen.model.tuning import TuningHeader
    from policygen.planning.cases import Case
    from policygen.proof.oracle import Compiler
    from policygen.results.together import Together

Command = TypeVar("Command", bound=Callable[..., Any])
GIVEN = (
    "files", "benches", "base", "cub", "regex", "axes", "arch", "reach", "collisions", "narrow",
    "force", "provenance", "measured_on", "least_score", "worst", "confidence", "without_samples",
)  # fmt: skip


def planning_options(command: Command) -> Command:
    """`--db`, `--arch` and what changes the plan."""
    for decorate in (
        click.option("--confidence", type=float, help="Of intervals.  [default: 0.95]"),
        click.option("--worst", type=float, help="Least ratio of any runtime workload.  [0.95]"),
        click.option("--least-score", type=float, help="Least score of a choice.  [1.015]"),
        click.option(
            "--without-samples",
            is_flag=True,
            help="Choose also where no samples tell how sure a score is.",
        ),
        click.option(
            "--measured-on",
            metavar="TREE",
            help="The tree that was measured, to compare its base: a path, a fetched version or a"
            " git revision.  [default: the recorded version, when it is fetched]",
        ),
        click.option("--force", is_flag=True, help="Take results of GPUs of other architectures."),
        click.option(
            "--provenance",
            type=click.Choice(["scores", "full"]),
            default="scores",
            show_default=True,
            help="What a comment says: variant and scores, or GPU, versions and day, too.",
        ),
        click.option(
            "--narrow",
            is_flag=True,
            help="Where a variant is worse for some types of an entry, name those and keep theirs.",
        ),
        click.option(
            "--collisions",
            type=click.Choice(["best-worst", "split"]),
            default="best-worst",
            show_default=True,
            help="Of workloads with one entry: the variant that is best in its worst case, or an"
            " entry for each type.",
        ),
        click.option(
            "--reach",
            type=click.Choice(["only", "later"]),
            default="only",
            show_default=True,
            help="Keep what later architectures have, or let them inherit.",
        ),
        filter_options,
        cub_option,
        sources,
        click.option("--arch", metavar="ARCH", help="The architecture that is tuned: sm90."),
        click.option(
            "--db",
            "files",
            multiple=True,
            metavar="DB",
            help="A cccl_meta_bench.db, NVBench's JSON results, or a glob. Repeatable.",
        ),
    ):
        command = decorate(command)
    return command


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
    return found, *_asked(found, quiet=quiet)


def _asked(found: "Tree", *, quiet: bool) -> "tuple[dict[str, bytes], Compiler]":
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
    from policygen.source.marks import mark_header
    from policygen.source.scan import read_changed

    members = marked_members(bound(found.cub.version), "specializations")

    known: dict[tuple[str, bytes], Marked] = {}

    def marked(name: str, content: bytes) -> "Marked":
        same = content == data[name]
        header = headers[name] if same else read_changed(found.paths[name], content)
        return mark_header(header, content, with_new_families(members, header))

    def mark(wanted: Mapping[str, bytes]) -> "dict[str, Marked]":
        missing = [item for item in wanted.items() if item not in known]
        # clang parses outside of the interpreter's lock.
        with ThreadPoolExecutor() as pool:
            known.update(zip(missing, pool.map(lambda item: marked(*item), missing), strict=True))
        return {name: known[name, content] for name, content in wanted.items()}

    progress = compile_progress(quiet=quiet)
    return Compiler(found.cub, headers, data, find_toolchain(), mark, progress)


def write_file(path: Path, data: bytes) -> None:
    """Writes a file that the user named."""
    from policygen.paths import write_atomically

    try:
        write_atomically(path, data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def make_plan(given: Mapping[str, Any], *, prove: bool, quiet: bool) -> Work:
    """From databases to a plan."""
    from policygen import tree
    from policygen.cli.inputs import open_inputs
    from policygen.planning.bases import base_remarks
    from policygen.planning.plan import Planner, Sources
    from policygen.results.top import rank

    if not given["files"]:
        raise InputError("no database is given", "Name one: --db cccl_meta_bench.db")
    options = _options(given)
    with open_inputs(given["files"], given["benches"], given["base"]) as files:
        top = rank(
            files.databases,
            pattern=parse_regex(given["regex"]),
            axes=parse_axes(given["axes"]),
            top=options.rules.candidates + 1,
            rules=options.rules,
            declared=files.declared,
        )
        tell(top.warnings)
        if not top.workloads:
            raise InputError("nothing matches", "See what there is: policygen db info DB...")
        cub = tree.find(given["cub"], Path.cwd())
        found, data, compiler = open_tree(cub, _headers(top, cub.version), quiet=quiet)
        planner = Planner(
            Sources(found.cub, compiler.headers, data),
            options,
            compiler,
            _together(files, options.rules),
            prove=prove,
        )
        plan = planner.plan(top.workloads)
        remarks = base_remarks(plan, found.cub.version, _bases(found.cub, given, plan, quiet=quiet))
        named = {str(path): names for path, names in files.made.items()}
    actions = tuple(
        action.model_copy(
            update={"databases": tuple(n for d in action.databases for n in named.get(d, (d,)))}
        )
        for action in plan.actions
    )
    remarks += _served(plan, compiler)
    if not prove and plan.edits:
        remarks.append("what the change does, and what later architectures inherit, was not asked")
    return Work(
        plan.model_copy(update={"actions": actions, "remarks": (*plan.remarks, *remarks)}),
        found,
        data,
        compiler,
    )


def _served(plan: "Plan", compiler: "Compiler") -> list[str]:
    """Later architectures that have no policy of their own: they get what is written, too."""
    from policygen.bindings.archs import archs
    from policygen.model.arch import arch_number

    target = arch_number(plan.options.arch)
    written = {(a.target.header, a.target.namespace) for a in plan.actions if a.target and a.after}
    found: dict[tuple[str, str], list[str]] = {}
    for file in plan.files if not plan.policies else ():
        for chain in compiler.headers[file.path].chains:
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


def _options(given: Mapping[str, Any]) -> "Options":
    from policygen.model.plan import Options

    if given["arch"] is None:
        raise InputError("no architecture is given", "Name the one that was measured: --arch sm90")
    (arch,) = parse_archs([given["arch"]])
    rules = chosen_rules(
        None,
        least_score=given["least_score"],
        worst_allowed=given["worst"],
        confidence=given["confidence"],
        without_samples=given["without_samples"] or None,
        prefer_simple=False,
    )
    names = ("reach", "collisions", "narrow", "force", "provenance")
    today = datetime.now(UTC).date().isoformat() if given["provenance"] == "full" else None
    return Options(arch=arch, rules=rules, date=today, **{name: given[name] for name in names})


def _headers(top: "DbTop", version: str) -> "tuple[str, ...]":
    """The headers that decide the benchmarks; all where a benchmark is not bound."""
    from policygen.bindings.load import bound

    wanted = {workload.algorithm for workload in top.workloads}
    names = set()
    for algorithm in bound(version):
        sites = {b.site for b in algorithm.benchmarks if b.name in wanted}
        names |= {site.header for site in algorithm.sites if site.name in sites}
    return tuple(sorted(names))


def _together(files: "Inputs", rules: "Rules") -> "Callable[[Sequence[Case]], Together]":
    from policygen.results.together import choose_together

    def choose(cases: "Sequence[Case]") -> "Together":
        wanted = [case.measurement.scored for case in cases]
        return choose_together(files.databases, wanted, rules, files.declared)

    return choose


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
        _, found[version] = _asked(read_tree(other), quiet=quiet)
    return found
