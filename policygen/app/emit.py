"""A header of policy selectors for CUB's public API, made from results."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from policygen import trees
from policygen.app.change import judged_by_base
from policygen.app.databases import Ranked, ranked
from policygen.app.filters import parse_target
from policygen.app.inputs import ResultFiles
from policygen.app.session import Session, check_serves
from policygen.bindings.load import bound
from policygen.bindings.recorded import version_of
from policygen.bindings.words import next_arch
from policygen.errors import EffectError, InputError, Problems
from policygen.headers.selectors.functions import policy_structs
from policygen.headers.user.header import HeaderTarget, render, selector_of
from policygen.headers.user.policies import SINCE
from policygen.headers.user.selectors import TunedSelector
from policygen.model.emitted import EmitAction, EmitProof, Emitted
from policygen.model.results import Rules, ScoredWorkload
from policygen.model.trees import Cub, numbers
from policygen.model.tuning import Policies, Question
from policygen.planning.emitter import Emitter, judge, questions
from policygen.planning.measured import several
from policygen.proof.ask import ask_policies
from policygen.proof.probe import AskedTree
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.proof.units import overlay
from policygen.results.cases import NOT_ASKED
from policygen.steps import Progress
from policygen.trees.manifest import shipped

DEFAULT_NAMESPACE = "tunings"
LISTED = 10
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")


def emit_selectors(
    session: Session,
    results: ResultFiles,
    arch: str | None,
    rules: Rules,
    *,
    algorithms: Sequence[str] = (),
    std: Literal[17, 20] = 20,
    namespace: str | None = None,
    out: str | None = None,
    force: bool = False,
    prove: bool = True,
) -> Emitted:
    """Makes the text of a header, and shows what it does; `out` is what it shall be called."""
    check_serves("emit", session.cub)
    target, cub = parse_target([] if arch is None else [arch]), session.cub
    spelled = _namespace(namespace, out)
    check_takes_selectors(cub)
    ask = _Compiler(cub, session.progress)
    with ranked(results, rules, session.note) as found:
        emitter = _emitter(found, ask, target, force=force)
        structs = emitter.structs
        wanted = _wanted(found.workloads(cub.version), algorithms, cub.version)
        judged = judged_by_base(session, wanted, target)
        tuned = emitter.emit([found.files.named(one) for one in judged])
    told = [*(a for each in tuned for p in each.parts for a in p.actions), *emitter.refused]
    actions = [action for action in told if action.reason != NOT_ASKED]
    written = [each for each in tuned if each.written]
    if not written:
        raise _nothing(actions)
    file = Path(out).name if out else f"{spelled.replace('::', '_')}.cuh"
    made = HeaderTarget(cub.version, target, next_arch(target), std, spelled, file)
    selectors = tuple(selector_of(each) for each in written)
    text = render(written, selectors, made, structs)
    proof = None
    if prove:
        proof = _proven(written, made, text, lambda q, first: ask(q, first, std))
    return Emitted(
        cub=cub,
        toolchain=f"nvcc {ask.toolchain.version}",
        arch=target,
        std=std,
        namespace=spelled,
        selectors=selectors,
        actions=tuple(actions),
        remarks=tuple(_remarks(actions, cub.version)),
        shared=tuple(name for each in written for name in each.shared),
        proof=proof,
        text=text,
    )


def taken_by_selectors(
    cub: Cub,
    results: Ranked,
    wanted: Sequence[ScoredWorkload],
    target: str,
    *,
    force: bool,
    progress: Progress | None,
) -> tuple[EmitAction, ...]:
    """The workloads that a header for a tree would return policies for."""
    check_takes_selectors(cub)
    tuned = _emitter(results, _Compiler(cub, progress), target, force=force).emit(wanted)
    actions = (action for each in tuned for part in each.parts for action in part.actions)
    return tuple(action for action in actions if action.decision == "write")


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Asks what selectors of a tree return."""

    cub: Cub
    progress: Progress | None
    toolchain: Toolchain = field(default_factory=find_toolchain)

    def __call__(
        self, questions: Sequence[Question], first: tuple[str, ...] = (), language: int = 17
    ) -> Policies:
        found = AskedTree(self.cub.version, (*first, *self.cub.include_folders), {})
        return ask_policies(questions, found, self.toolchain, std=language, progress=self.progress)


def _emitter(found: Ranked, ask: _Compiler, target: str, *, force: bool) -> Emitter:
    structs = policy_structs(trees.tuning_headers(ask.cub)[0].parent)
    return Emitter(
        ask.cub.version, target, structs, ask, found.choose, force, spaces=found.files.spaces
    )


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


def takes_selectors(cub: Cub) -> bool:
    """Whether the public API of a CUB takes policy selectors."""
    return numbers(cub.version)[:2] >= SINCE


def check_takes_selectors(cub: Cub) -> None:
    """Refuses a CUB whose public API takes no policy selectors."""
    if not takes_selectors(cub):
        raise InputError(
            f"CUB {cub.version} takes no policy selectors in its public API",
            "It does since 3.5: name such a tree with --cub, or edit the headers: policygen apply",
        )


def _wanted(
    workloads: Sequence[ScoredWorkload], names: Sequence[str], version: str
) -> list[ScoredWorkload]:
    """The workloads of the algorithms that are named, as bindings or selectors call them."""
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


def _proven(
    tuned: Sequence[TunedSelector],
    target: HeaderTarget,
    text: str,
    ask: Callable[[Sequence[Question], tuple[str, ...]], Policies],
) -> EmitProof:
    """What the header does; anything else than it says is an error."""
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


def _remarks(actions: Sequence[EmitAction], version: str) -> Iterator[str]:
    """What the results were measured against, where that is not this CUB."""
    written = [one for one in actions if one.decision == "write"]
    for measured in sorted({version_of(one.cccl) for one in written} - {version}):
        yield (
            f"measured on CCCL {measured}, and the header is for CUB {version}, whose kernels and"
            " policies may be others: what was faster there can be slower here; measure it again"
        )
    yield from several((one.name, one.cccl) for one in written)


def _nothing(actions: Sequence[EmitAction]) -> InputError:
    """Why there is no selector to write."""
    reasons = dict.fromkeys(f"{action.name}: {action.reason}" for action in actions)
    shown = [*list(reasons)[:LISTED]]
    if len(reasons) > len(shown):
        shown.append(f"and {len(reasons) - len(shown)} more")
    return InputError("there is nothing to emit", "\n  ".join(shown))
