"""What the library does that no command shows: who opens a session has named nothing."""

from dataclasses import make_dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from policygen import Filter, open_session, rendering, scan_tunings
from policygen.app import measured_workloads
from policygen.app.change import find_base_tree
from policygen.app.filters import typed_archs
from policygen.app.inputs import parse_gpus
from policygen.app.session import check_named
from policygen.errors import InputError
from policygen.model.trees import BoundVersion
from policygen.proof.kernel_units import save
from policygen.store.journal import Journal
from policygen.store.targets import staged_name
from tests.proof.sass.test_dumps import DUMPS
from tests.trees.debs import make_rocprim, make_rocprim_checkout

MINI = str(rendering.folder("cub_headers") / "mini")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))


def test_a_store_that_lies_in_the_folder_could_be_a_strangers():
    Journal.open(Path("other.db")).__exit__()
    Path("other.db").rename("policygen.db")
    session = open_session(MINI)
    with pytest.raises(InputError, match="may not be your store"):
        _ = session.store
    assert open_session(MINI, "policygen.db").store == Path("policygen.db")


def test_a_store_that_was_made_here_counts_without_its_name():
    assert open_session(MINI).store == Path("policygen.db")
    Journal.open(Path("policygen.db")).__exit__()
    assert open_session(MINI).store == Path("policygen.db")


def test_a_header_names_its_tree_and_nothing_is_printed(capsys):
    header = next(Path(MINI).rglob("tuning_*.cuh"))
    scan, errors = scan_tunings(None, Filter((str(header),)))
    assert errors == ()
    assert header.is_relative_to(scan.cub.root)
    assert {family.header for family in scan.families} == {header.name}
    assert capsys.readouterr() == ("", "")


def test_a_release_that_was_found_is_named_before_it_is_written_to(tmp_path, monkeypatch):
    headers = tmp_path / "headers"
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(headers))
    make_rocprim(headers / "rocprim-7.2.4/include")
    found = open_session(library="rocprim").cub
    with pytest.raises(InputError) as raised:
        check_named(found)
    assert raised.value.message.startswith("nothing is written to rocPRIM 4.2.0 in ")
    assert "add --cub rocprim@7.2.4;" in raised.value.remedy
    check_named(open_session("rocprim@7.2.4").cub)


def test_what_is_left_beside_any_tuning_header_is_told(tmp_path):
    root = make_rocprim(tmp_path / "tree")
    staged_name(root / "rocprim/device/device_scan_config.hpp", "1").touch()
    with pytest.raises(InputError, match="was left behind by an interrupted policygen"):
        open_session(str(root), whole=True)


def test_a_tree_without_a_version_is_opened(tmp_path):
    make_rocprim_checkout(tmp_path / "tree", "")
    assert open_session(str(tmp_path / "tree")).cub.version == "unknown"


def test_a_gpu_of_an_architecture_has_a_name():
    with pytest.raises(InputError) as caught:
        parse_gpus(["=sm90"])
    assert str(caught.value) == (
        "--gpu-arch '=sm90' does not name a GPU\n  For example: --gpu-arch B400=sm110"
    )


def test_dumps_are_no_tree_to_compare_with(tmp_path):
    save(tmp_path / "kept", DUMPS, "calls", "3.0.1", "nvcc 13.2.86")
    with pytest.raises(InputError, match=r"kept: dumps contain no headers\n  Name a revision, a"):
        find_base_tree(open_session(MINI), str(tmp_path / "kept"))


def test_an_unknown_architecture_of_amd_is_told():
    with pytest.raises(InputError, match=r"rocPRIM has no configs for gfx999\n  Available: gfx"):
        typed_archs(["gfx999"])


def test_a_workload_whose_header_does_not_compile_is_not_opened(monkeypatch):
    compiler = make_dataclass("Compiler", ["progress", "sources"])(None, None)
    compiler.tell = lambda *_: {}
    drafter = SimpleNamespace(dialect=SimpleNamespace(check=lambda _: None))
    monkeypatch.setattr(measured_workloads, "open_compiler", lambda *_, **__: compiler)
    monkeypatch.setattr(measured_workloads, "Drafter", lambda *_: drafter)
    session = SimpleNamespace(cub=SimpleNamespace(bindings=BoundVersion("3.6.0")), progress=None)
    point = "cub.bench.reduce.sum", (("T", "I8"),)
    opened = measured_workloads._as_headers(session, {point: (None, None, ())}, "sm90")
    assert str(opened[point]) == "its header does not compile"
