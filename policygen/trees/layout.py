"""Where the include folder of a tree stands, and what belongs to it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen.cache import digest
from policygen.errors import InputError
from policygen.model.trees import CALLED, UNKNOWN, Cub, Dialect, Library
from policygen.process import named_folder, which
from policygen.trees.files import absolute, is_file, is_folder, listing, read, seems_file
from policygen.trees.manifest import DialectRule, FetchedRule, Release, Wheel, shipped


def libraries(library: Library | None = None) -> tuple[Library, ...]:
    """The libraries that are looked for, in their order: one, or all."""
    return tuple(shipped().libraries) if library is None else (library,)


def roots(folder: Path, layouts: Sequence[str], library: Library = "cub") -> tuple[Path, ...]:
    """Include folders of a library's trees, each once, in the order of the layouts."""
    checkouts = shipped().libraries[library].layouts.checkout
    found: dict[Path, Path] = {}
    for layout in layouts:
        candidates = sorted(folder.glob(layout)) if "*" in layout else [folder / layout]
        for root in candidates:
            if is_root(root, library, checkout=layout in checkouts):
                # A toolkit's `include` is a link to `targets/x86_64-linux/include`.
                found.setdefault(root.resolve(), root)
    return tuple(found.values())


def readable_roots(
    folder: Path, layouts: Sequence[str], library: Library = "cub"
) -> tuple[Path, ...]:
    """The same for a search, which passes by what it may not read."""
    try:
        return roots(folder, layouts, library)
    except (InputError, OSError):
        return ()


def is_root(folder: Path, library: Library = "cub", *, checkout: bool = False) -> bool:
    """Whether a folder is the include folder of a library's tree."""
    known = shipped().libraries[library].tree
    marks = (known.checkout_mark,) if checkout else known.marks
    return any(is_file(folder / mark) for mark in marks)


def open_root(root: Path, found: str, library: Library = "cub") -> Cub:
    """The tree with this include folder."""
    version = read_version(root, library)
    return Cub(
        root=str(root),
        version=version,
        dialect=read_dialect(root, version, library),
        found=found,
        includes=tuple(
            str(folder) for folder in (root, *_beside(root, library), *_needed(root, library))
        ),
    )


def _beside(root: Path, library: Library) -> tuple[Path, ...]:
    """Thrust and libcu++, which a checkout keeps beside CUB and all others with it."""
    layouts = shipped().libraries[library].layouts
    if root.name not in layouts.checkout:
        return ()
    folders = (root.parent / name for name in layouts.beside_checkout)
    return tuple(folder for folder in folders if is_folder(folder))


def _needed(root: Path, library: Library) -> tuple[Path, ...]:
    """The first toolkit's folder that has the header of others, where the tree itself has not."""
    known = shipped().libraries[library]
    if known.needs is None or is_file(root / known.needs):
        return ()
    places = (
        folder / layout
        for folder in toolkit_folders(library)
        for layout in known.layouts.toolkit
        if seems_file(folder / layout / known.needs)
    )
    return tuple(places)[:1]


def own_folders(cub: Cub) -> tuple[Path, ...]:
    """The include folders of a tree without those of toolkits, which have others' headers."""
    needs = shipped().libraries[cub.library].needs
    folders = tuple(map(Path, cub.include_folders))
    return tuple(
        one for one in folders if one == folders[0] or not (needs and is_file(one / needs))
    )


def tunings_folder(cub: Cub) -> Path:
    """Where a tree has its tuning headers, and where they are written."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    older = (root / name for name in files.older_tunings)
    newest = root / files.tunings
    return next((one for one in (newest, *older) if is_folder(one)), newest)


def tuning_folders(cub: Cub) -> tuple[Path, ...]:
    """All folders that have tuning headers, that where they are written first."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    others = ((root / pattern).parent for pattern in files.others)
    return tuple(dict.fromkeys((tunings_folder(cub), *others)))


def tuning_headers(cub: Cub) -> tuple[Path, ...]:
    """The tuning headers of a tree, sorted by name; one that is broken is told when it is read."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    folder = tunings_folder(cub)
    if not is_folder(folder):
        raise _no_tunings(cub, f"there is no folder {folder}")
    headers = other_headers(cub)
    if folder == root / files.tunings:
        headers |= {*_matching(folder / files.headers)}
    if not headers:
        raise _no_tunings(cub, f"{folder} holds no {files.headers}")
    return tuple(sorted(headers, key=lambda path: path.name))


def other_headers(cub: Cub) -> set[Path]:
    """The tuning headers beside the folder of these."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    patterns = [root / name for name in files.others if is_folder((root / name).parent)]
    return {path for pattern in patterns for path in _matching(pattern)}


def _matching(pattern: Path) -> Iterator[Path]:
    for path in listing(pattern.parent):
        if path.match(pattern.name) and not path.is_dir():
            yield path


def _no_tunings(cub: Cub, where: str) -> InputError:
    return InputError(
        f"{cub.called} {cub.version} in {cub.root} has no tuning headers: {where}",
        "name another tree with --cub",
    )


def lone_dialect(header: Path) -> Dialect:
    """What a header without a tree is written in, as far as its name says; CUB's older one else."""
    for known in shipped().libraries.values():
        if header.match(known.tree.sources) and not isinstance(known.dialect, DialectRule):
            return known.dialect
    return read_dialect(header.parent, "0")


def check_library(cub: Cub, library: Library | None) -> Cub:
    """The tree; an error where another library's was asked for."""
    if library in {None, cub.library}:
        return cub
    assert library is not None
    raise InputError(
        f"{cub.root} holds {cub.called} {cub.version}, not {CALLED[library]}",
        f"name a tree of {CALLED[library]}, or give --library {cub.library}",
    )


# "#define CUB_VERSION 300001 // macro expansion with ## requires this to be a single value"
# "#define ROCPRIM_VERSION 2 * 100000 + 13 * 100 + 1"
_TERMS = rb"((?:\d{1,9}[ \t]*[*+][ \t]*){0,8}\d{1,9})\b"
_DEFINED = rb"^[ \t]*#[ \t]*define[ \t]+%s[ \t]+" + _TERMS + rb"[ \t]*(?![ \t*+])"
# set(VERSION_STRING "3.3.0")
_SET = rb'^[ \t]*set[ \t]*\([ \t]*%s[ \t]+"(\d{1,4}\.\d{1,3}\.\d{1,2})"[ \t]*\)'


# Which version a tree holds, and in which dialect its tunings are written.


def read_version(root: Path, library: Library = "cub") -> str:
    """`3.0.1`, from `CUB_VERSION 300001` in `cub/version.cuh`; `unknown` where no file says it."""
    rule = shipped().libraries[library].tree.version
    path = root / rule.file
    if rule.project and not is_file(path):
        return _project_version(root, library) or UNKNOWN
    found = _search(_DEFINED, rule.macro, read(path, root))
    if not found:
        raise InputError(
            f"{path} does not define {rule.macro}", f"it is not {CALLED[library]}'s, or damaged"
        )
    number = _sum(found)
    return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"


def _project_version(root: Path, library: Library) -> str | None:
    """What a checkout says, which has the header only as a template."""
    if (path := project_file(root, library)) is None:
        return None
    variable = shipped().libraries[library].tree.version.variable
    return _search(_SET, variable, read(path, path.parent))


def project_file(root: Path, library: Library) -> Path | None:
    """The file of a checkout that says its version, where a library has one."""
    rule = shipped().libraries[library].tree.version
    path = absolute(rule.project, root) if rule.project else None
    return path if path and is_file(path) else None


def _search(pattern: bytes, name: str, data: bytes) -> str | None:
    match = re.search(pattern % re.escape(name.encode()), data, re.MULTILINE)
    return match[1].decode() if match else None


def _sum(text: str) -> int:
    """`2 * 100000 + 10 * 100 + 9`, as C++ counts it."""
    total = 0
    for product in text.split("+"):
        value = 1
        for factor in product.split("*"):
            value *= int(factor)
        total += value
    return total


def read_dialect(root: Path, version: str, library: Library = "cub") -> Dialect:
    """Told by one small header; by the version where a tree lacks that header."""
    known = shipped().libraries[library]
    rule = known.dialect
    if not isinstance(rule, DialectRule):
        return rule
    header = root / known.tree.tunings / rule.header
    if is_file(header):
        has_selectors = rule.selectors.encode() in read(header, root)
    else:
        has_selectors = version_key(version) >= version_key(rule.since)
    return "selectors" if has_selectors else "specializations"


def version_key(version: str) -> tuple[int, ...]:
    """A key that sorts 3.10.0 behind 3.9.0."""
    return tuple(int(part) for part in version.split("."))


# Where toolkits of a library are installed, as far as this machine tells.


def toolkit_folders(library: Library = "cub") -> tuple[Path, ...]:
    """Those that variables name, that of the program on PATH, the usual ones."""
    known = shipped().libraries[library].toolkits
    named = (named_folder(name) for name in known.variables)
    folders = [folder for folder in named if folder]
    if program := which(known.program):
        # TOOLKIT/bin/nvcc, often behind a link in a common folder.
        folders.append(Path(program).resolve().parent.parent)
    return tuple(dict.fromkeys((*folders, *usual_folders(library))))


def usual_folders(library: Library) -> tuple[Path, ...]:
    """Where installers put a toolkit."""
    return tuple(map(Path, shipped().libraries[library].toolkits.folders))


# Names what a tree holds: what was proved of it holds as long as the name is the same.


def tree_content(cub: Cub) -> str:
    """A digest of all headers of the library itself, by their places in the tree."""
    root = Path(cub.root)
    paths = sorted(path for path in own_sources(cub) if path.is_file())
    parts = (part for path in paths for part in (str(path.relative_to(root)), read(path, root)))
    return digest(*parts)


def own_sources(cub: Cub) -> Iterator[Path]:
    """The headers of the library itself, without those that a tree has beside it."""
    files = shipped().libraries[cub.library].tree
    return (Path(cub.root) / files.folder).rglob(files.sources)


@dataclass(frozen=True, slots=True)
class Name:
    """A release of a library that can be fetched."""

    library: Library
    version: str

    def __str__(self) -> str:
        return f"{self._rule.name}{self.version}"

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        """Sorts by library, then oldest first."""
        return tuple(shipped().libraries).index(self.library), version_key(self.version)

    @property
    def _rule(self) -> FetchedRule:
        return shipped().libraries[self.library].fetched

    def place(self, folder: Path) -> Path:
        """Where it is kept in the folder of fetched trees."""
        return folder / f"{self._rule.folder}{self.version}"

    def root(self, folder: Path) -> Path:
        """Its include folder."""
        return self.place(folder) / self._rule.include


# How fetched trees are called and kept: `3.0.1` in `3.0.1`, `rocprim@5.7.1` in `rocprim-5.7.1`.


def parse(text: str) -> Name | None:
    """What a text names, if it can be a release."""
    return _named(text, {one: row.fetched.name for one, row in shipped().libraries.items()})


def kept_as(folder: str) -> Name | None:
    """What a folder's name says, if it can be a release."""
    return _named(folder, {one: row.fetched.folder for one, row in shipped().libraries.items()})


def _named(text: str, prefixes: dict[Library, str]) -> Name | None:
    found = (
        Name(library, version)
        for library, prefix in prefixes.items()
        if text.startswith(prefix) and _is_version(version := text.removeprefix(prefix))
    )
    return next(found, None)


def _is_version(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 3 and all(part.isascii() and part.isdecimal() for part in parts)


def current_file(library: Library) -> str:
    """What remembers the tree that was fetched last: `.current`, `.rocprim-current`."""
    return f".{shipped().libraries[library].fetched.folder}current"


def name_of(source: Wheel | Release) -> Name:
    """What a wheel or packages hold."""
    if isinstance(source, Wheel):
        return Name("cub", source.cub)
    return Name(source.library, source.release)


def find_source(text: str) -> Wheel | Release | None:
    """Where a release comes from, if the manifest says it."""
    return next((one for one in sources() if str(name_of(one)) == text), None)


def sources() -> tuple[Wheel | Release, ...]:
    """All that the manifest has."""
    known = shipped()
    return (*known.wheels, *known.releases)


def source(text: str) -> Wheel | Release:
    """The same; none is an error."""
    if found := find_source(text):
        return found
    for library, row in shipped().libraries.items():
        if row.fetched.name and text.startswith(row.fetched.name):
            known = ", ".join(str(name_of(r)) for r in shipped().releases if r.library == library)
            raise InputError(f"no package is known that holds {text}", f"known are: {known}")
    return shipped().wheel(text)
