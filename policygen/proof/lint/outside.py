"""Finds headers that ask a compile for what no proof can know."""

from collections.abc import Callable, Sequence
from pathlib import Path

from policygen.model.cub import Cub
from policygen.model.lint import Finding
from policygen.proof.lint.place import place
from policygen.proof.outside.asks import Dependence
from policygen.proof.outside.nothing import asked as looked
from policygen.tree.layout import own_folders


def unprovable(cub: Cub, headers: Sequence[Path], named: Callable[[Path], str]) -> list[Finding]:
    """Finds where tuning headers, or what they include, ask for it; `named` shows a file."""
    folders = [folder.absolute() for folder in own_folders(cub)]
    names = []
    for path in map(Path.absolute, headers):
        inside = next((one for one in folders if path.is_relative_to(one)), None)
        if inside is None:  # a header that lies by itself
            inside = path.parent
            folders.append(inside)
        names.append(path.relative_to(inside).as_posix())
    return [_finding(asked, named) for asked in looked(names, folders)]


def _finding(asked: Dependence, named: Callable[[Path], str]) -> Finding:
    where = place(asked.header.data, asked.span)
    return Finding(
        rule="not-provable",
        severity="error",
        header=Path(asked.header.name).name,
        family="",
        args=(),
        line=where.line,
        column=where.column,
        message=f"not provable: it {asked.message}",
        path=named(Path(asked.header.path)),
        text=where.text,
        width=where.width,
    )
