"""The policy header of a kernel of one's own: planned, proven and written as CUB's headers are."""

import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.app.apply import apply_plan
from policygen.app.inputs import ResultFiles
from policygen.app.plan import plan_tunings
from policygen.app.session import Session
from policygen.bindings.own_kernel import FAMILIES, KernelMaker, taken_kernel
from policygen.errors import InputError
from policygen.model.arch import arch_number, parse_arch
from policygen.model.kernel import KernelHeader
from policygen.model.plan import Options
from policygen.model.results import Rules
from policygen.rendering import fill
from policygen.textdiff import unified
from policygen.tree.given import open_tree
from policygen.tree.manifest import shipped

POLICY = "own/kernel_policy.cuh.j2"
VERSION = "cub/version.cuh"
"""What makes a folder a tree."""
CHAIN = "cub/own_chain.cuh"
"""What is no tuning, and asks which architecture is compiled for."""
_CHAIN = re.compile(r"(?s)^// chain\n(.*?)^// end of chain\n", re.MULTILINE)
_MADE = re.compile(
    r"(?s)^(?:enum strategies|\[\[nodiscard\]\]|struct kernel_values).*?^\};?\n", re.MULTILINE
)


def kernel_header(
    session: Session,
    maker: KernelMaker,
    results: ResultFiles,
    arch: str,
    header: Path,
    rules: Rules | None = None,
) -> KernelHeader:
    """What results of an architecture make of a header, or of one that is made; it writes nothing.

    It is a tree of one header for that: what plans and proves changes of CUB's does it here.
    """
    before = _before(maker, header, arch)
    chain, tunings = _divided(before)
    with TemporaryDirectory(prefix="policygen-") as folder:
        root = Path(folder) / "include"
        place = root / shipped().tree.tunings
        place.mkdir(parents=True)
        shutil.copyfile(session.root / VERSION, root / VERSION)
        (root / CHAIN).write_text(chain, encoding="utf-8")
        (place / maker.header).write_text(tunings, encoding="utf-8")
        cub = open_tree(root)
        folders = (str(root), *session.cub.include_folders)
        cub = cub.model_copy(update={"includes": folders, "dialect": FAMILIES})
        inside = replace(session, cub=cub, named=Path(folder) / "policygen.db")
        planned = plan_tunings(inside, results, Options(arch=arch, rules=rules or Rules()))
        made = apply_plan(inside, planned, write=False)
    written = made.changed.get(maker.header)
    after = before if written is None else _whole(written.decode(), chain)
    return KernelHeader(
        path=str(header),
        arch=arch,
        is_new=not header.exists(),
        actions=made.plan.actions,
        effect=made.effect,
        diff=unified(header.name, _old(header), after.encode()),
        text=after,
    )


def emitted_kernel(
    session: Session,
    results: ResultFiles,
    archs: Sequence[str],
    header: Path | None,
    rules: Rules | None = None,
) -> KernelHeader | None:
    """`policygen emit` for a kernel of one's own; nothing where none is taken."""
    maker = taken_kernel()
    if maker is None:
        return None
    if header is None or len(archs) != 1:
        raise InputError(
            "a kernel's header is made for one architecture, and gets those of others in turn",
            "Name both: --arch sm90 -o FILE",
        )
    return kernel_header(session, maker, results, parse_arch(archs[0]), header, rules)


def new_header(maker: KernelMaker, arch: str) -> str:
    """The header of a kernel of which nothing was tuned: what it has today, everywhere."""
    every = maker.given.every_parameter
    today = maker.spelled(maker.start)
    members = {label: {"type": maker.type_of(label), "value": today[label]} for label in every}
    return fill(
        POLICY,
        {
            "file": maker.path.name,
            "name": maker.scope,
            "arch": arch_number(arch),
            "members": members,
            "strategies": [one.name for one in maker.given.strategy],
            "classes": list(_classes(maker)),
            "includes": maker.given.includes,
        },
    )


def _before(maker: KernelMaker, header: Path, arch: str) -> str:
    if not header.exists():
        return new_header(maker, arch)
    check_header(maker, header)
    return header.read_text(encoding="utf-8")


def check_header(maker: KernelMaker, header: Path) -> None:
    """Refuses a file in which no results can be written: it is of something else, or edited."""
    if not header.exists():
        return
    text = header.read_bytes().decode(errors="replace")
    if _no_tuning(text) != _no_tuning(new_header(maker, "sm90")):
        raise InputError(
            f"{header} is no policy header of {maker.plain} as {maker.path.name} has it: its chain,"
            " its classes of sizes or its members are other ones",
            "Name another file with -o.",
        )


def _divided(text: str) -> tuple[str, str]:
    """What is no tuning, and the rest, which includes it."""
    match = _CHAIN.search(text)
    assert match is not None
    return f"#pragma once\n{match[1]}", _CHAIN.sub(f"#include <{CHAIN}>\n", text)


def _whole(tunings: str, chain: str) -> str:
    body = chain.removeprefix("#pragma once\n")
    return tunings.replace(f"#include <{CHAIN}>\n", f"// chain\n{body}// end of chain\n")


def _no_tuning(text: str) -> list[str]:
    """What is no tuning, and has to be as it was made: the chain, classes of sizes, members."""
    return [one[0] for pattern in (_CHAIN, _MADE) for one in pattern.finditer(text)]


def _old(header: Path) -> bytes:
    return header.read_bytes() if header.exists() else b""


def _classes(maker: KernelMaker) -> list[dict[str, object]]:
    """Each class, and the number of elements up to which it is: the middle to the next one."""
    sizes = {
        name: [one.elements for one in maker.given.size if (one.of or "all") == name]
        for name in maker.given.classes
    }
    names = list(sizes)
    return [
        {"name": name, "upto": math.isqrt(max(sizes[name]) * min(sizes[following]))}
        for name, following in pairwise(names)
    ] + [{"name": names[-1], "upto": None}]
