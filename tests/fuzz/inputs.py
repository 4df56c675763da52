"""Hostile documents, settings, kernels, NVBench results, archives, repositories and pull requests.

Each gets a message, soon, in little memory, and nothing of it runs or leads elsewhere.

`python -m tests.fuzz.inputs --count N --seed S` prints what came of them.
"""

import io
import json
import os
import random
import re
import resource
import shutil
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.cli.main import main
from policygen.errors import InputError
from policygen.gpu.cluster_workers import unpack
from policygen.opening import DOCUMENT
from tests.fuzz import command, imports
from tests.fuzz.databases import TEXTS
from tests.gpu.test_archives import archive
from tests.results import test_nvbench as nvbench
from tests.test_workflow import REVIEW, Runner, committed, git, scripts
from tests.trees.toys import make_root

SECONDS = 60.0
"""Of the processor, for one command."""
MEMORY = 2 << 30
"""Bytes that all commands together may take beyond what the process had."""
SECRET = 123_457
"""Bytes of a file outside: neither they nor whether it is there may show."""
VALUES = [*imports.VALUES, "0" * 5_000, [[] for _ in range(99)]]
JSON = (
    "wide",
    "deep",
    "long",
    "large",
    "bytes",
    "cut",
    "sparse",
    "pipe",
    "link",
    "folder",
    "value",
)
REFUSED = ("deep", "large", "dotted", "brackets", "sparse", "pipe", "folder")
"""What no command reads to its end: the message names the file."""
TOML = ("dotted", "brackets", "keys", "bytes", "cut", "sparse", "pipe", "link", "folder")


def hostile(path: Path, good: bytes, kind: str, rng: random.Random) -> None:
    """Writes a file that is not what it should be."""
    size = rng.choice((10, 99, 10**5, 10**6))
    parts = {
        "wide": lambda: b"[" + rng.choice((b"[],", b"{},", b'"",', b"0,")) * size + b"0]",
        "deep": lambda: rng.choice((b"[", b'{"a":', b"[[],")) * size,
        "long": lambda: (
            b'{"format": ' + rng.choice((b"9" * size, b'"' + b"x" * size + b'"')) + b"}"
        ),
        "large": lambda: b"[" + b"[]," * (DOCUMENT // 3 + size),
        "dotted": lambda: b"a." * size + b"a = 1\n",
        "brackets": lambda: b"a = " + b"[" * size,
        "keys": lambda: b"".join(b"k%d = %d\n" % (n, n) for n in range(min(size, 10**5))),
        "bytes": lambda: rng.choice((b"\xff\xfe", b"\xef\xbb\xbf", b"\0", b"\x1b]0;t\x07")) + good,
        "cut": lambda: good[: rng.randrange(len(good))],
    }
    if kind in parts:
        path.write_bytes(parts[kind]())
    elif kind == "sparse":
        path.write_bytes(good)
        os.truncate(path, 40 << 30)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(rng.choice(("/dev/zero", "/etc/passwd", path.name, "none", "/proc/self")))
    elif kind == "folder":
        path.mkdir()
    else:
        document = json.loads(good)
        imports.rewritten(document, rng)
        path.write_text(json.dumps(document), "utf-8", "surrogatepass")


def document(folder: Path, rng: random.Random) -> tuple[str, list[str]]:
    """A review, a plan, or a result of NVBench."""
    path, kind = folder / "document.json", rng.choice(JSON)
    saved = {"format": rng.choice(("policygen/review/1", "policygen/plan/2")), "cub": {}}
    good = json.dumps(rng.choice((saved, nvbench.document()))).encode()
    hostile(path, good, kind, rng)
    mini = str(make_root(folder / "tree"))
    verbs = [
        ["review", "--from", str(path)],
        ["apply", "--plan", str(path), "--cub", mini, "--diff"],
        ["db", "top", str(path)],
        ["db", "import", str(path), "-o", str(folder / "out.db")],
        ["verify-performance", "--before", str(path), "--after", str(path)],
    ]
    return f"document {kind}", rng.choice(verbs)


def settings(folder: Path, rng: random.Random) -> tuple[str, list[str]]:
    """Settings, or a workload."""
    path, kind = folder / "settings.toml", rng.choice(TOML)
    hostile(path, b"[choose]\nworst_allowed = 0.9\n", kind, rng)
    verbs = [
        ["db", "choose", str(folder / "none.db"), "--config", str(path)],
        [
            "tune",
            str(path),
            "-o",
            str(folder / "out.cuh"),
            "--cub",
            str(make_root(folder / "tree")),
        ],
    ]
    return f"settings {kind}", rng.choice(verbs)


def kernel(folder: Path, rng: random.Random) -> tuple[str, list[str]]:
    """A kernel or its header that lies elsewhere: a compiler would quote it."""
    mine, name = folder / "mine", rng.choice(("link.cu", "inner/secret"))
    mine.mkdir()
    (folder / "secret").write_text(f"{SECRET}\n")
    (mine / "link.cu").symlink_to(rng.choice((folder / "secret", "../secret", "link.cu")))
    (mine / "inner").symlink_to(folder)
    places = {"linked": name, "absolute": str(folder / "secret"), "above": "../secret"}
    kind = rng.choice((*places, "name"))
    key = rng.choice(("kernel", "header"))
    files = {"kernel": "own.cu", key: places.get(kind) or rng.choice(TEXTS)}
    (mine / "own.cu").write_text("template <int> __global__ void own() {}\n")
    rows = [f"{key} = {json.dumps(value, ensure_ascii=True)}\n" for key, value in files.items()]
    (mine / "own.toml").write_text("".join(rows) + 'arguments = []\nblock = "32"\ngrid = "1"\n')
    tree = ["--cub", str(make_root(folder / "tree"))]
    return f"kernel {kind}", ["tune", str(mine / "own.toml"), "-o", str(folder / "o.cuh"), *tree]


def members(folder: Path, rng: random.Random) -> tuple[str, list[str]]:
    """An archive of headers for a worker of a cluster."""
    sparse = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    hows = [
        {},
        {"type": rng.choice((b"1", b"2", b"3", b"5", b"6", b"S", b"x")), "linkname": "/etc/passwd"},
        {"pax_headers": {**sparse, "GNU.sparse.realsize": "9" * rng.choice((2, 11))}},
        {"pax_headers": {"size": rng.choice(("9" * 11, "-1", "0", "x"))}},
        {"pax_headers": {"path": rng.choice(("../out", "/tmp/out", "a/../../out", "\0"))}},
    ]
    names = (
        "a.cuh",
        "b/a.cuh",
        "../out",
        "/tmp/out",
        ".",
        "a.cuh/b",
        "x" * 300,
        *(text for text in TEXTS if len(text) < 999),
    )
    parts = [(rng.choice(names), rng.choice(hows)) for _ in range(rng.randint(1, 4))]
    data = bytearray(archive(*parts))
    for _ in range(rng.choice((0, 0, 1))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    (folder / "archive").write_bytes(data)
    return "archive", ["unpack", str(folder)]


def pull_request(folder: Path, rng: random.Random) -> tuple[str, list[str]]:
    """A change whose tree leads elsewhere, or is a repository by its plain files."""
    kind = rng.choice(("link", "repository"))
    tree = folder / "workspace/tree"
    tree.parent.mkdir()
    git(folder, "init", "-q", str(tree))
    if kind == "link":
        name = "".join(rng.choice("a\n\r\t\x1b=: /.") for _ in range(rng.randint(1, 9)))
        target = folder / rng.choice(("workspace/tree", "elsewhere")) / f"a{name}"
        target.mkdir(parents=True, exist_ok=True)
        (tree / "inner").symlink_to(target)
    else:
        (tree / "inner").mkdir()
        plain_repository(tree / "inner", folder / "canary")
    committed(tree, "hostile")
    return f"pull request {kind}", ["action.yml", str(folder), rng.choice(REVISIONS)]


def samples(folder: Path, rng: random.Random) -> tuple[str, list[str]]:
    """A result of NVBench whose sample file lies elsewhere, or is no such file."""
    outside = folder / "outside.bin"
    made = nvbench.document(states=[nvbench.state("16", samples=rng.choice((1, 9, 10**12)))])
    results = folder / "ipt_19.tpb_512"
    inside = results / "out.json-bin" / "16.bin"
    inside.parent.mkdir(parents=True)
    kind = rng.choice(("absolute", "above", "linked", "name", "sparse", "pipe", "short"))
    names = {"absolute": str(outside), "above": f"../{outside.name}", "name": rng.choice(TEXTS)}
    if kind in names:
        nvbench_name(made, names[kind])
    elif kind == "linked":
        inside.symlink_to(outside)
    elif kind == "sparse":
        inside.touch()
        os.truncate(inside, 40 << 30)
    elif kind == "pipe":
        os.mkfifo(inside)
    else:
        inside.write_bytes(b"\0" * rng.randrange(9))
    if rng.random() < 0.5:
        outside.write_bytes(b"\0" * SECRET)
    path, base = results / "out.json", nvbench.write(folder / "base", nvbench.document())
    path.write_text(json.dumps(made), "utf-8", "surrogatepass")
    return f"samples {kind}", ["db", "choose", str(path), "--base", str(base)]


def nvbench_name(made: dict, name: str) -> None:
    """Names another file of samples."""
    made["benchmarks"][0]["states"][0]["summaries"][-1]["data"][0]["value"] = name


def repository(folder: Path, rng: random.Random) -> tuple[str, list[str]]:
    """A tree that is a repository by its plain files, whose settings start a program."""
    root = make_root(folder / "tree")
    kind = rng.choice(("root", "above", "file", "nested"))
    place = {"root": root, "above": folder / "tree", "nested": root / "cub"}.get(kind)
    if place is None:
        (place := folder / "elsewhere").mkdir()
        (root / ".git").write_text(f"gitdir: {place}\n")
    plain_repository(place, folder / "canary")
    revision = rng.choice(REVISIONS)
    verbs = [
        ["review", "--cub", str(root), "--base", revision],
        ["resolve", "--cub", str(root), "--compare", revision, "--arch", "sm90"],
        ["status", "--cub", str(root)],
    ]
    return f"repository {kind}", rng.choice(verbs[:2] if rng.random() < 0.8 else verbs[2:])


def plain_repository(place: Path, canary: Path) -> None:
    """The files of a bare repository, whose settings start a program."""
    started = f"touch {canary}"
    (place / "objects").mkdir(exist_ok=True)
    (place / "refs").mkdir(exist_ok=True)
    (place / "HEAD").write_text("ref: refs/heads/main\n")
    (place / "config").write_text(
        "[core]\nrepositoryformatversion = 1\nbare = true\n"
        f"fsmonitor = {started}\nsshCommand = {started}\nhooksPath = {place}\n"
        f'[extensions]\npartialClone = origin\n[remote "origin"]\nurl = .\n'
        f"promisor = true\nuploadpack = {started}; git-upload-pack\n"
    )


REVISIONS = ("0" * 40, "HEAD", "main", "--upload-pack=x", f"{'1' * 40}...")
FORMS = (
    *(document, document, settings, samples, samples),
    *(repository, kernel, members, pull_request),
)


def attempt(arguments: list[str]) -> tuple[int, str, float]:
    """The exit status of a command, what it printed, and how long it took."""
    output, began = io.StringIO(), time.process_time()
    with redirect_stdout(output), redirect_stderr(output):
        status = OTHERS.get(arguments[0], main)(arguments)
    return status, output.getvalue(), time.process_time() - began


def _unpacked(arguments: list[str]) -> int:
    """Unpacks as a worker does; what is written is below the folder and no more than was sent."""
    folder = Path(arguments[1])
    try:
        unpack((folder / "archive").read_bytes(), folder / "deep/there")
        status = 0
    except (InputError, OSError) as error:
        print(error)  # noqa: T201
        status = 2
    written = [path for path in folder.rglob("*") if path.is_file() and path.name != "archive"]
    assert all(path.is_relative_to(folder / "deep/there") for path in written), written
    assert sum(path.stat().st_size for path in written) < 1_000
    return status


def _reviewed(arguments: list[str]) -> int:
    """Runs the steps of the action that look at the tree before policygen does."""
    folder, base = Path(arguments[1]), arguments[2]
    runner = Runner(REVIEW, folder, {}, tree="tree/inner", base=base)
    steps = scripts(REVIEW)
    try:
        for name in ("prepare", "base"):
            runner.step(steps[name])
        status = 0
    except AssertionError as error:
        print(str(error).replace("\x1b", ""))  # noqa: T201  bash's own words
        status = 2
    told = (folder / "output-prepare").read_text().splitlines()
    assert not told or [row.partition("=")[0] for row in told] == ["folder", "tree", "performance"]
    assert not told or told[0] == f"folder={folder}/temp/policygen-review"
    assert not told or told[1].startswith(f"tree={folder}/workspace/")
    return status


OTHERS = {"unpack": _unpacked, "action.yml": _reviewed}


def run(count: int, seed: int) -> Counter[str]:
    """Tries so many inputs; what is wrong raises."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    for number in range(count):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        with TemporaryDirectory() as name:
            folder = Path(name).resolve()
            kind, arguments = rng.choice(FORMS)(folder, rng)
            status, text, seconds = attempt(arguments)
            outcome = f"input {number} of seed {seed}, {kind}, {arguments}: {status}\n{text}"
            assert status in {0, 1, 2}, outcome
            assert "Traceback" not in text, outcome
            assert not {*text} & {"\x1b", "\x07", "\u202e", "\0"}, outcome
            assert len(text) < 100_000, outcome[:2_000]
            assert seconds < SECONDS, f"{seconds}: {outcome}"
            assert not (folder / "canary").exists(), outcome
            form, _, how = kind.partition(" ")
            if form in {"document", "settings"} and how in REFUSED:
                assert status == 2, outcome
                assert f"{form}." in text, outcome
            if kind.startswith(("samples", "kernel")):
                assert str(SECRET) not in text.replace(",", ""), outcome
                _check_no_oracle(folder, arguments, (status, text))
            for path in folder.rglob("*"):
                if path.is_fifo():
                    path.unlink()
            shutil.rmtree(folder / "tree", ignore_errors=True)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        assert after - before < MEMORY, f"{after - before} bytes: {outcome[:2_000]}"
        counts[f"{kind}: exit {status}"] += 1
        counts["inputs"] += 1
    return counts


def _check_no_oracle(folder: Path, arguments: list[str], answer: tuple[int, str]) -> None:
    """Whether the file outside is there changes nothing."""
    outside = folder / "outside.bin"
    if outside.exists():
        outside.unlink()
    else:
        outside.write_bytes(b"\0" * SECRET)
    again = attempt(arguments)[:2]
    pair = [(status, re.sub(r"policygen-\w+", "", text)) for status, text in (answer, again)]
    assert pair[0] == pair[1], f"{arguments}: {pair}"


if __name__ == "__main__":
    command.main(run, __doc__, 300)
