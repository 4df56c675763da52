import os
from pathlib import Path

import pytest

from policygen.errors import InputError
from policygen.headers import benchmark_sources as module
from policygen.headers.benchmark_sources import around, checkout, read_benchmarks
from policygen.opening import MAX_BYTES
from tests.headers.benchmarks.places import CHECKOUT, failures, read, write


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bench/reduce/sum.cu", "cub.bench.reduce.sum"),
        ("bench/run/encode.lookahead.cu", "cub.bench.run.encode.lookahead"),
        ("bench/bench/sum.cu", "cub.bench.sum"),
        ("cub/benchmarks/bench/a/b/c.cu", "cub.bench.a.b.c"),
        ("thrust/benchmarks/bench/sort/keys.cu", "thrust.bench.sort.keys"),
        ("elsewhere/sum.cu", "cub.bench.sum"),
        ("elsewhere/bench.cu", "cub.bench.bench"),
    ],
)
def test_a_file_is_named_by_its_path_below_the_nearest_bench(
    tmp_path: Path, path: str, name: str
) -> None:
    document, _ = read_benchmarks([write(tmp_path, "", path)])
    assert [one.name for one in document.benchmarks] == [name]


def test_a_folder_without_bench_is_where_names_start(tmp_path: Path) -> None:
    write(tmp_path, "", "mine/reduce/sum.cu")
    document, _ = read_benchmarks([tmp_path / "mine"])
    assert [one.name for one in document.benchmarks] == ["cub.bench.reduce.sum"]


def test_the_checkout_around_a_folder_is_found() -> None:
    assert around(CHECKOUT / "cub" / "cub") == CHECKOUT
    assert checkout(CHECKOUT) == CHECKOUT


def test_no_checkout_around_or_at_a_path_is_told_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        around(tmp_path)
    assert str(caught.value) == (
        f"no benchmarks found: no folder above {tmp_path.as_posix()} has cub/benchmarks/bench\n"
        "  Name a .cu file, a folder of benchmarks, a CCCL checkout or a cccl_meta_bench.csv"
    )
    with pytest.raises(InputError) as caught:
        checkout(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path.as_posix()} has no cub/benchmarks/bench\n"
        "  Toolkits, wheels and fetched versions have no benchmarks: name a CCCL checkout"
    )


def test_paths_that_are_not_there_or_hold_nothing_are_refused(tmp_path: Path) -> None:
    text = write(tmp_path, "hello\n", "notes.txt")
    (tmp_path / "empty").mkdir()
    for path, message in (
        (tmp_path / "no", "no does not exist"),
        (tmp_path / "empty", "empty has no benchmark sources\n  Their names end in .cu"),
        (text, "notes.txt is neither a benchmark source nor a search space\n"
         "  A search space starts with a line such as: ctk_version,13.0.88"),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            read_benchmarks([path])
        assert str(caught.value) == f"{tmp_path.as_posix()}/{message}"


def test_a_wrong_file_does_not_keep_the_others_from_being_read(tmp_path: Path) -> None:
    write(tmp_path, "/* open", "bench/bad.cuh")
    write(tmp_path, '#include "bad.cuh"\n', "bench/a.cu")
    write(tmp_path, '#include "bad.cuh"\n', "bench/b.cu")
    write(tmp_path, "NVBENCH_BENCH(f);\n", "bench/c.cu")
    write(tmp_path, " " * (MAX_BYTES + 1), "bench/d.cu")
    (tmp_path / "bench/e.cu").symlink_to("e.cu")
    (tmp_path / "bench/f.cuh").symlink_to("nowhere")
    (tmp_path / "bench/loop").symlink_to(".")
    os.mkfifo(tmp_path / "bench/g.cu")
    document, errors = read_benchmarks([tmp_path / "bench"])
    assert [one.name for one in document.benchmarks] == ["cub.bench.c"]
    root = f"{tmp_path.as_posix()}/bench/"
    assert sorted(str(error).replace(root, "") for error in errors) == [
        "bad.cuh:1:1: unterminated comment\n  /* open\n  ^^",
        "d.cu:1:1: 8,388,609 bytes: larger than the limit of 8 MiB\n  It is not a CUB source file.",
        "e.cu:1:1: cannot be read: Too many levels of symbolic links",
        "f.cuh:1:1: broken link",
        "g.cu:1:1: not a regular file",
        "loop:1:1: link to its own parent folder",
    ]
    assert len(document.problems) == 6


def test_an_unreadable_folder_or_search_space_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "", "bench/one.cu")
    meta = write(tmp_path, b"ctk_version,1\0", "meta.csv")
    assert [line.splitlines()[0] for line in failures(meta)] == [
        "meta.csv:1:14: NUL byte: this is not a text file (perhaps UTF-16)"
    ]

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", path.as_posix())

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert failures(tmp_path / "bench") == ["bench:1:1: cannot be read: Permission denied"]


def test_links_inside_of_a_checkout_are_followed(tmp_path: Path) -> None:
    write(tmp_path, "", "other/x.cu")
    write(tmp_path, "", "cub/benchmarks/bench/one.cu")
    (tmp_path / "cub/benchmarks/bench/link").symlink_to("../../../other")
    document, errors = read_benchmarks([tmp_path / "cub/benchmarks/bench"])
    assert errors == ()
    assert [one.name for one in document.benchmarks] == ["cub.bench.link.x", "cub.bench.one"]


def test_what_leads_out_of_the_folder_is_refused_by_name_without_a_line_of_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "secret").write_text("token\0")
    write(tmp_path, "", "other/x.cu")
    write(tmp_path, '#include "../secret"\n', "bench/include.cu")
    write(tmp_path, '#include "/proc/self/environ"\n', "bench/environ.cu")
    (tmp_path / "bench/file.cu").symlink_to("../secret")
    (tmp_path / "bench/folder").symlink_to("../other")
    remedy = "Replace the link with the file, or name the tree that it belongs to."
    assert failures(tmp_path / "bench") == [
        f"/proc/self/environ:1:1: it lies outside of the tree bench\n  {remedy}",
        f"bench/file.cu:1:1: a link points outside of the tree bench\n  {remedy}",
        f"bench/folder/x.cu:1:1: a link points outside of the tree bench\n  {remedy}",
        f"secret:1:1: it lies outside of the tree bench\n  {remedy}",
    ]


def test_includes_that_go_round_in_circles_or_too_deep_come_to_an_end(tmp_path: Path) -> None:
    write(tmp_path, '#include "one.cu"\n#include "b.cuh"\nNVBENCH_BENCH(a);', "bench/a.cuh")
    write(tmp_path, '#include "a.cuh"\nNVBENCH_BENCH(b);', "bench/b.cuh")
    text = '#include "a.cuh"\n#include "b.cuh"\n#include <b.cuh>\n#include "."\n#include "no"\n'
    assert [s.name for s in read(tmp_path, text).subbenches] == ["b", "a"]
    for i in range(40):
        write(tmp_path, f'#include "{i + 1}.cuh"\n', f"deep/{i}.cuh")
    path = write(tmp_path, '#include "0.cuh"\n', "deep/one.cu")
    assert failures(path) == ['31.cuh:1:1: includes nest deeper than 32\n  #include "32.cuh"\n  ^']


@pytest.mark.parametrize(
    ("version", "values"), [("200800", "C64"), ("300200", "C32"), ("unknown", "C32")]
)
def test_without_the_helper_header_the_version_tells_the_lists(
    tmp_path: Path, version: str, values: str
) -> None:
    write(tmp_path, f"#define CUB_VERSION {version}\n", "cub/cub/version.cuh")
    path = write(
        tmp_path,
        "NVBENCH_BENCH_TYPES(f, NVBENCH_TYPE_AXES(all_types));",
        "cub/benchmarks/bench/a.cu",
    )
    document, _ = read_benchmarks([path])
    assert document.benchmarks[0].rt_axes["T"][-1] == values


def test_the_helper_header_of_a_checkout_comes_before_our_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path,
        "using all_types = nvbench::type_list<double>;",
        "cub/benchmarks/nvbench_helper/nvbench_helper/nvbench_helper.cuh",
    )
    text = '#include "nvbench_helper.cuh"\nNVBENCH_BENCH_TYPES(f, NVBENCH_TYPE_AXES(all_types));'
    path = write(tmp_path, text, "thrust/benchmarks/bench/a.cu")
    write(tmp_path, "using all_types = int;", "thrust/benchmarks/bench/nvbench_helper.cuh")
    monkeypatch.chdir(path.parent)
    document, _ = read_benchmarks([Path("a.cu")])
    assert (document.benchmarks[0].name, document.benchmarks[0].source) == (
        "thrust.bench.a",
        "a.cu",
    )
    assert document.benchmarks[0].rt_axes == {"T": ("F64",)}
    assert module.LEVELS > 4
