"""Locates the include folder of a tree and the files that belong to it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from policygen.cache import digest
from policygen.errors import InputError
from policygen.model.expression import Expression
from policygen.model.trees import CALLED, UNKNOWN, Cub, Dialect, Library, numbers, version_of
from policygen.process import named_folder, which
from policygen.trees.files import absolute, is_file, is_folder, listing, read, seems_file
from policygen.trees.manifest import DialectRule, FetchedRule, Release, Wheel, shipped


def libraries(library: Library | None = None) -> tuple[Library, ...]:
    """Returns the libraries to search for, in order: the given one, or all."""
    return tuple(shipped().libraries) if library is None else (library,)


def roots(folder: Path, layouts: Sequence[str], library: Library = "cub") -> tuple[Path, ...]:
    """Returns the distinct include folders of a library's trees, in the order of the layouts."""
    checkouts = shipped().libraries[library].layouts.checkout
    root_by_target: dict[Path, Path] = {}
    for layout in layouts:
        candidates = sorted(folder.glob(layout)) if "*" in layout else [folder / layout]
        for root in candidates:
            if is_root(root, library, checkout=layout in checkouts):
                # A toolkit's `include` is a link to `targets/x86_64-linux/include`.
                root_by_target.setdefault(root.resolve(), root)
    return tuple(root_by_target.values())


def readable_roots(
    folder: Path, layouts: Sequence[str], library: Library = "cub"
) -> tuple[Path, ...]:
    """Like `roots`, but skips unreadable folders."""
    try:
        return roots(folder, layouts, library)
    except (InputError, OSError):
        return ()


def is_root(folder: Path, library: Library = "cub", *, checkout: bool = False) -> bool:
    """Returns whether a folder is the include folder of a library's tree."""
    tree_files = shipped().libraries[library].tree
    marks = (tree_files.checkout_mark,) if checkout else tree_files.marks
    return any(is_file(folder / mark) for mark in marks)


def open_root(root: Path, origin: str, library: Library = "cub") -> Cub:
    """Opens the tree with this include folder."""
    version, layouts = read_version(root, library), shipped().libraries[library].layouts
    # A checkout keeps Thrust and libcu++, or the likes of them, beside the library.
    names = layouts.beside_checkout if root.name in layouts.checkout else ()
    beside = filter(is_folder, (root.parent / name for name in names))
    return Cub(
        root=str(root),
        version=version,
        dialect=read_dialect(root, version, library),
        found=origin,
        includes=tuple(map(str, (root, *beside, *_required_folder(root, library)))),
    )


def _required_folder(root: Path, library: Library) -> tuple[Path, ...]:
    """Returns the first toolkit folder with the external header that the tree lacks, if needed."""
    row = shipped().libraries[library]
    if row.needs is None or is_file(root / row.needs):
        return ()
    places = (
        folder / layout
        for folder in toolkit_folders(library)
        for layout in row.layouts.toolkit
        if seems_file(folder / layout / row.needs)
    )
    return tuple(places)[:1]


def own_folders(cub: Cub) -> tuple[Path, ...]:
    """Returns a tree's include folders without those of toolkits."""
    needs = shipped().libraries[cub.library].needs
    first, *others = map(Path, cub.include_folders)
    return (first, *(folder for folder in others if not (needs and is_file(folder / needs))))


def tunings_folder(cub: Cub) -> Path:
    """Returns the folder where a tree has its tuning headers and new ones are written."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    older = (root / name for name in files.older_tunings)
    newest = root / files.tunings
    return next((folder for folder in (newest, *older) if is_folder(folder)), newest)


def tuning_folders(cub: Cub) -> tuple[Path, ...]:
    """Returns all folders with tuning headers; the one where new ones are written comes first."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    other_folders = ((root / pattern).parent for pattern in files.others)
    return tuple(dict.fromkeys((tunings_folder(cub), *other_folders)))


def tuning_headers(cub: Cub) -> tuple[Path, ...]:
    """Returns a tree's tuning headers sorted by name; unreadable ones fail only when read."""
    files, root = shipped().libraries[cub.library].tree, Path(cub.root)
    folder = tunings_folder(cub)
    if not is_folder(folder):
        raise _no_tunings(cub, f"there is no folder {folder}")
    headers = other_headers(cub)
    if folder == root / files.tunings:
        headers |= {*_matching(folder / files.headers)}
    if not headers:
        raise _no_tunings(cub, f"{folder} contains no {files.headers}")
    return tuple(sorted(headers, key=lambda path: path.name))


def other_headers(cub: Cub) -> set[Path]:
    """Returns the tuning headers outside of the usual folder."""
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
        "Name another tree with --cub",
    )


def lone_dialect(header: Path) -> Dialect:
    """Returns the dialect of a header without a tree by its name, else CUB's older dialect."""
    for row in shipped().libraries.values():
        if header.match(row.tree.sources) and not isinstance(row.dialect, DialectRule):
            return row.dialect
    return read_dialect(header.parent, "0")


def check_library(cub: Cub, library: Library | None) -> Cub:
    """Returns the tree; raises if another library was requested."""
    if library in {None, cub.library}:
        return cub
    assert library is not None
    raise InputError(
        f"{cub.root} contains {cub.called} {cub.version}, not {CALLED[library]}",
        f"Name a tree of {CALLED[library]}, or give --library {cub.library}",
    )


# "#define CUB_VERSION 300001 // macro expansion with ## requires this to be a single value"
# "#define ROCPRIM_VERSION 2 * 100000 + 13 * 100 + 1"
_TERMS = rb"((?:\d{1,9}[ \t]*[*+][ \t]*){0,8}\d{1,9})\b"
_MACRO = rb"^[ \t]*#[ \t]*define[ \t]+%s[ \t]+" + _TERMS + rb"[ \t]*(?![ \t*+])"
# set(VERSION_STRING "3.3.0")
_SET_VARIABLE = rb'^[ \t]*set[ \t]*\([ \t]*%s[ \t]+"(\d{1,4}\.\d{1,3}\.\d{1,2})"[ \t]*\)'
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


# Version and dialect of a tree


def read_version(root: Path, library: Library = "cub") -> str:
    """Reads `3.0.1` from `CUB_VERSION 300001` in `cub/version.cuh`; `unknown` if no file has it."""
    rule = shipped().libraries[library].tree.version
    path = root / rule.file
    if rule.project and not is_file(path):
        # A checkout has the version header only as a template.
        project = project_file(root, library)
        text = read(project, project.parent) if project else b""
        return _search(_SET_VARIABLE, rule.variable, text) or UNKNOWN
    terms = _search(_MACRO, rule.macro, read(path, root))
    if not terms:
        raise InputError(
            f"{path} does not define {rule.macro}",
            f"It does not belong to {CALLED[library]}, or is damaged",
        )
    return version_of(Expression(terms).value({}))


def project_file(root: Path, library: Library) -> Path | None:
    """Returns the file that states a checkout's version, if the library has such a file."""
    rule = shipped().libraries[library].tree.version
    path = absolute(rule.project, root) if rule.project else None
    return path if path and is_file(path) else None


def _search(pattern: bytes, name: str, data: bytes) -> str | None:
    match = re.search(pattern % re.escape(name.encode()), data, re.MULTILINE)
    return match[1].decode() if match else None


def read_dialect(root: Path, version: str, library: Library = "cub") -> Dialect:
    """Detects the dialect from one small header, or from the version if the header is missing."""
    row = shipped().libraries[library]
    rule = row.dialect
    if not isinstance(rule, DialectRule):
        return rule
    header = root / row.tree.tunings / rule.header
    if is_file(header):
        has_selectors = rule.selectors.encode() in read(header, root)
    else:
        has_selectors = numbers(version) >= numbers(rule.since)
    return "selectors" if has_selectors else "specializations"


def toolkit_folders(library: Library = "cub") -> tuple[Path, ...]:
    """Returns folders from variables, then that of the program on PATH, then usual ones."""
    toolkits = shipped().libraries[library].toolkits
    variable_folders = (named_folder(name) for name in toolkits.variables)
    folders = [folder for folder in variable_folders if folder]
    if program := which(toolkits.program):
        # TOOLKIT/bin/nvcc, often behind a link in a common folder.
        folders.append(Path(program).resolve().parent.parent)
    return tuple(dict.fromkeys((*folders, *usual_folders(library))))


def usual_folders(library: Library) -> tuple[Path, ...]:
    """Returns the folders to which installers put a toolkit."""
    return tuple(map(Path, shipped().libraries[library].toolkits.folders))


# Identity of a tree's contents: proofs hold as long as it is unchanged


def tree_content(cub: Cub) -> str:
    """Returns a digest of all headers of the library itself, by path in the tree."""
    root = Path(cub.root)
    paths = sorted(path for path in own_sources(cub) if path.is_file())
    parts = (part for path in paths for part in (str(path.relative_to(root)), read(path, root)))
    return digest(*parts)


def own_sources(cub: Cub) -> Iterator[Path]:
    """Returns the headers of the library itself, without those of other libraries in the tree."""
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
        """The sort key: by library, then oldest first."""
        return tuple(shipped().libraries).index(self.library), numbers(self.version)

    @property
    def _rule(self) -> FetchedRule:
        return shipped().libraries[self.library].fetched

    def place(self, folder: Path) -> Path:
        """Returns the release's folder in the folder of fetched trees."""
        return folder / f"{self._rule.folder}{self.version}"

    def root(self, folder: Path) -> Path:
        """Returns the release's include folder."""
        return self.place(folder) / self._rule.include


# Names and folders of fetched trees: `3.0.1` in `3.0.1`, `rocprim@5.7.1` in `rocprim-5.7.1`


def parse(text: str, prefix_in: Callable[[FetchedRule], str] = attrgetter("name")) -> Name | None:
    """Parses a release's name."""
    for library, row in shipped().libraries.items():
        prefix = prefix_in(row.fetched)
        if text.startswith(prefix) and _VERSION.fullmatch(version := text.removeprefix(prefix)):
            return Name(library, version)
    return None


def kept_as(folder: str) -> Name | None:
    """Parses the name of a release's folder."""
    return parse(folder, attrgetter("folder"))


def current_file(library: Library) -> str:
    """Names the file that records the current tree: `.current`, `.rocprim-current`."""
    return f".{shipped().libraries[library].fetched.folder}current"


def name_of(source: Wheel | Release) -> Name:
    """Returns the release that a wheel or packages contain."""
    if isinstance(source, Wheel):
        return Name("cub", source.cub)
    return Name(source.library, source.release)


def find_source(text: str) -> Wheel | Release | None:
    """Returns the manifest's source for a release, if there is one."""
    return next((candidate for candidate in sources() if str(name_of(candidate)) == text), None)


def sources() -> tuple[Wheel | Release, ...]:
    """Returns all wheels and package releases of the manifest."""
    manifest = shipped()
    return (*manifest.wheels, *manifest.releases)


def source(text: str) -> Wheel | Release:
    """Like `find_source`, but raises if there is none."""
    if manifest_source := find_source(text):
        return manifest_source
    for library, row in shipped().libraries.items():
        if row.fetched.name and text.startswith(row.fetched.name):
            known_names = ", ".join(
                str(name_of(release))
                for release in shipped().releases
                if release.library == library
            )
            raise InputError(f"no known package contains {text}", f"Known: {known_names}")
    return shipped().wheel(text)
