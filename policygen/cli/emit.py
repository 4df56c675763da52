"""`policygen emit`: a header of policy selectors for CUB's public API, made from results."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policygen.cli.options import output_options
from policygen.cli.plan_options import choice_options
from policygen.errors import InputError, Problems

if TYPE_CHECKING:
    from policygen.emit.emitter import Tuned
    from policygen.emit.header import Target
    from policygen.model.cub import Cub
    from policygen.model.emit import EmitAction, EmitProof, Emitted
    from policygen.model.policies import Policies, Question
    from policygen.model.results import ScoredWorkload
    from policygen.source.selectors.functions import Struct

SINCE = (3, 5)
"""The first version whose device algorithms take policy selectors."""
DEFAULT_NAMESPACE = "tunings"
LISTED = 10
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")


@click.command()
@choice_options
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="NAME",
    help="Only these: reduce,scan. Repeatable.  [default: all that the databases hold]",
)
@click.option("-o", "--out", metavar="FILE", help="Where to write it.  [default: standard output]")
@click.option(
    "--std",
    type=click.Choice(["17", "20"]),
    default="20",
    show_default=True,
    help="The language: with designated initialisers, or without.",
)
@click.option(
    "--namespace",
    metavar="NAME",
    help=f"Of the selectors.  [default: the file's name, or {DEFAULT_NAMESPACE}]",
)
@click.option("--no-prove", is_flag=True, help="Do not ask the compiler what the header does.")
@output_options
def emit(
    algorithms: tuple[str, ...],
    out: str | None,
    std: str,
    namespace: str | None,
    no_prove: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Writes policy selectors for CUB's public API into a header of your own; CUB stays as it is.

    The selectors go into the environment of a call. The compiler shows first that each workload
    that was tuned gets its policy, and every other one what CUB selects; else nothing is written.
    """
    from policygen.cli.plan_options import parse_target
    from policygen.report.emit import print_emitted

    target = parse_target(given["arch"])
    named = _namespace(namespace, out)
    document = _emitted(
        given, algorithms, target, int(std), named, out, prove=not no_prove, quiet=quiet
    )
    if out is not None:
        from policygen.cli.planning import write_file

        write_file(Path(out), document.text.encode())
    if as_json:
        sys.stdout.write(document.to_json() + "\n")
        return 0
    if out is None:
        sys.stdout.write(document.text)
    if not quiet:
        print_emitted(document, out, verbose=verbose)
    return 0


def _namespace(given: str | None, out: str | None) -> str:
    """What was given, or the file's name as an identifier."""
    if given is not None:
        if not _IDENTIFIER.fullmatch(given):
            raise InputError(
                f"--namespace {given!r} is no C++ namespace", "It looks like my::tunings."
            )
        return given
    stem = re.sub(r"\W", "_", Path(out).name.partition(".")[0], flags=re.ASCII) if out else ""
    return stem if _IDENTIFIER.fullmatch(stem) else DEFAULT_NAMESPACE


def _emitted(
    given: Mapping[str, Any],
    algorithms: Sequence[str],
    arch: str,
    std: int,
    namespace: str,
    out: str | None,
    *,
    prove: bool,
    quiet: bool,
) -> "Emitted":
    from policygen.cli.asking import compile_progress
    from policygen.cli.opening import open_cub
    from policygen.cli.planning import chooser, ranked
    from policygen.emit.emitter import Emitter
    from policygen.emit.header import Target, render, selector_of
    from policygen.model.emit import Emitted
    from policygen.proof.policies import ask_policies
    from policygen.proof.probe import Tree
    from policygen.proof.toolchain import find_toolchain
    from policygen.results.asked import NOT_ASKED

    cub = open_cub(given["cub"])
    _check_version(cub)
    structs = _structs(cub)
    toolchain = find_toolchain()
    progress = compile_progress(quiet=quiet)

    def ask(
        questions: "Sequence[Question]", first: tuple[str, ...] = (), language: int = 17
    ) -> "Policies":
        found = Tree(cub.version, (*first, *cub.include_folders), {})
        return ask_policies(questions, found, toolchain, std=language, progress=progress)

    with ranked(given) as results:
        emitter = Emitter(
            cub.version,
            arch,
            structs,
            ask,
            chooser(results.files, results.rules),
            given["force"],
            spaces=results.files.spaces,
        )
        wanted = _wanted(results.workloads(cub.version), algorithms, cub.version)
        tuned = emitter.emit([results.files.named(one) for one in wanted])
    told = [*(a for each in tuned for p in each.parts for a in p.actions), *emitter.refused]
    actions = [action for action in told if action.reason != NOT_ASKED]
    written = [each for each in tuned if each.written]
    if not written:
        raise _nothing(actions)
    file = Path(out).name if out else f"{namespace.replace('::', '_')}.cuh"
    target = Target(cub.version, arch, _until(arch), std, namespace, file)
    selectors = tuple(selector_of(each) for each in written)
    text = render(written, selectors, target, structs)
    proof = None
    if prove:
        proof = _proven(written, target, text, lambda q, first: ask(q, first, std))
    return Emitted(
        cub=cub,
        toolchain=f"nvcc {toolchain.version}",
        arch=arch,
        std=20 if std == 20 else 17,
        namespace=namespace,
        selectors=selectors,
        actions=tuple(actions),
        shared=tuple(name for each in written for name in each.shared),
        proof=proof,
        text=text,
    )


def _check_version(cub: "Cub") -> None:
    from policygen.model.bindings import numbers

    if numbers(cub.version)[:2] < SINCE:
        raise InputError(
            f"CUB {cub.version} takes no policy selectors in its public API",
            "It does since 3.5: name such a tree with --cub, or edit the headers: policygen apply",
        )


def _structs(cub: "Cub") -> "dict[str, Struct]":
    """What the folder of tuning headers declares, those without selectors included."""
    from policygen import tree
    from policygen.emit.aggregates import find_aggregates
    from policygen.source.files import read_bytes

    folder = tree.tuning_headers(cub)[0].parent
    return find_aggregates({path.name: read_bytes(path) for path in sorted(folder.glob("*.cuh"))})


def _wanted(
    workloads: "Sequence[ScoredWorkload]", names: Sequence[str], version: str
) -> "list[ScoredWorkload]":
    """The workloads of the algorithms that are named, as bindings or selectors call them."""
    from policygen.bindings.load import bound

    asked = {part.strip() for name in names for part in name.split(",") if part.strip()}
    if not asked:
        return list(workloads)
    known: dict[str, set[str]] = {}
    for algorithm in bound(version):
        for benchmark in algorithm.benchmarks:
            called = {s.name for s in algorithm.selectors if s.site == benchmark.site}
            for name in {algorithm.algorithm, *called}:
                known.setdefault(name, set()).add(benchmark.name)
    if unknown := sorted(asked - known.keys()):
        raise InputError(
            f"no algorithm is called {', '.join(unknown)}", f"There are: {', '.join(sorted(known))}"
        )
    kept = [one for one in workloads if any(one.algorithm in known[name] for name in asked)]
    if not kept:
        held = ", ".join(sorted({one.algorithm for one in workloads}))
        raise InputError(
            f"the databases hold nothing of {', '.join(sorted(asked))}", f"They hold: {held}"
        )
    return kept


def _until(arch: str) -> str | None:
    """The architecture that comes next: it gets what CUB selects."""
    from policygen.bindings.archs import archs
    from policygen.model.arch import arch_number
    from policygen.proof.policies import ARCHS

    later = [one for one in {*archs(), *ARCHS} if arch_number(one) > arch_number(arch)]
    return min(later, key=arch_number, default=None)


def _proven(
    tuned: "Sequence[Tuned]",
    target: "Target",
    text: str,
    ask: "Callable[[Sequence[Question], tuple[str, ...]], Policies]",
) -> "EmitProof":
    """What the header does; anything else than it says is an error."""
    from policygen.emit.judge import judge, questions
    from policygen.errors import EffectError
    from policygen.proof.overlay import overlay
    from policygen.tree.manifest import shipped

    folder = overlay(target.file, text.encode())
    include = f"{shipped().tree.tunings}/{target.file}"
    try:
        told = ask(questions(tuned, target.namespace, include), (folder,))
    except Problems as error:
        raise EffectError(
            [f"the header does not compile: {one}" for one in error.errors]
        ) from error
    proof, wrong = judge(tuned, told, target.arch)
    if wrong:
        raise EffectError(wrong)
    return proof


def _nothing(actions: "Sequence[EmitAction]") -> InputError:
    """Why there is no selector to write."""
    reasons = dict.fromkeys(f"{action.name}: {action.reason}" for action in actions)
    shown = [*list(reasons)[:LISTED]]
    if len(reasons) > len(shown):
        shown.append(f"and {len(reasons) - len(shown)} more")
    return InputError("there is nothing to emit", "\n  ".join(shown))
