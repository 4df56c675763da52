"""Files of one's own that add benchmarks to CUB's algorithms."""

import pytest

from policygen import settings as settings_module
from policygen.bindings import load
from policygen.bindings.load import axis_type, bindings, bound
from policygen.errors import InputError
from policygen.headers.user.policies import selector_for
from policygen.model.trees import BoundVersion

NAME = "cub.bench.mine.sum"
JOINED = f"""
algorithm = "scan"

[[benchmark]]
name = "{NAME}"
like = "cub.bench.scan.exclusive.sum.lookahead"
site = "scan"
axes = {{ T = ["Mine"] }}
parameters = {{ wrps = "1:8:1" }}
includes = ["mine.cuh", "cuda/std/functional"]
[benchmark.roles]
InputValueT = "axis::T"

[[types]]
name = "Mine"
cpp = "::mine::Mine"
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of bindings that the settings name; bindings are read once a process."""
    place = tmp_path / "bindings"
    place.mkdir()
    settings = tmp_path / "policygen.toml"
    settings.write_text('bindings = "bindings"\n')
    monkeypatch.setattr(settings_module, "named", lambda: settings)
    for kept in (load.bindings, load.bound):
        kept.cache_clear()
    yield place
    for kept in (load.bindings, load.bound):
        kept.cache_clear()


def scan(version="3.6.0"):
    (found,) = (one for one in bound(BoundVersion(version)) if one.algorithm == "scan")
    return found


def test_its_benchmarks_stand_among_those_of_the_algorithm(own):
    (own / "mine.toml").write_text(JOINED)
    (own / "mine.cuh").touch()
    one = scan().benchmarks[-1]
    assert one.name == NAME
    assert one.includes == (str(own / "mine.cuh"), "cuda/std/functional")
    assert axis_type("Mine", BoundVersion("3.6.0")).cpp == "::mine::Mine"
    # The selector of the benchmark that it is like serves no other one.
    assert "wrps" in str(selector_for(one, BoundVersion("3.6.0")).selector.members)


def test_one_file_can_be_named(own):
    (own / "mine.toml").write_text(JOINED)
    (own / "other.toml").write_text("algorithm = 3\n")
    (own.parent / "policygen.toml").write_text('bindings = "bindings/mine.toml"\n')
    assert scan().benchmarks[-1].includes[0] == "mine.cuh"
    (own.parent / "policygen.toml").write_text('bindings = "none.toml"\n')
    bindings.cache_clear()
    with pytest.raises(InputError, match=r"there is no folder or file .*none.toml"):
        bindings()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((NAME, "cub.bench.scan.exclusive.sum"), "cub.bench.scan.exclusive.sum is already bound"),
        (("[[types]]", '[[selector]]\nsite="scan"\nname="a"\npolicy="B"\nheader="c"\n'
          'takes=""\ncall=""\n[[types]]'), "scan is already bound"),
    ],
)  # fmt: skip
def test_what_cub_has_is_not_replaced(own, change, words):
    (own / "mine.toml").write_text(JOINED.replace(*change))
    with pytest.raises(InputError, match=words):
        bindings()


def test_a_path_that_no_include_can_have_is_refused(own):
    place = own / "a>b"
    place.mkdir()
    (place / "mine.cuh").touch()
    (place / "mine.toml").write_text(JOINED)
    (own.parent / "policygen.toml").write_text('bindings = "bindings/a>b"\n')
    with pytest.raises(InputError, match="has characters that a compiler or make treats specially"):
        bindings()
