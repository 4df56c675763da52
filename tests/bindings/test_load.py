# ruff: noqa: E501  a row of a table is one line
import json
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from policygen import rendering, trees
from policygen.bindings import load
from policygen.bindings.load import axis_type, axis_values, bound, is_tested
from policygen.errors import InputError, SourceError
from policygen.headers.scan import scan_headers
from policygen.model.bindings import Binding, Call, Types
from policygen.model.trees import BoundVersion
from policygen.opening import load_toml
from tests.real_trees import tree as cub_tree
from tests.tiers import sampled

VERSIONS = ["2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0"]
FOLDER = rendering.folder("schemas") / "bindings"
FILES = [*sorted(FOLDER.glob("*.toml")), *sorted(FOLDER.glob("*/*.toml"))]
ALGORITHMS = [path for path in FILES if path.name != "types.toml"]
SCHEMAS = rendering.folder("schemas") / "json"
CONSTANTS = {"true", "false"}


def names(paths: list[Path]) -> list[str]:
    """Algorithms of other libraries have their library's name before them."""
    return [
        path.stem if path.parent == FOLDER else f"{path.parent.name}.{path.stem}" for path in paths
    ]


def is_constant(value: str) -> bool:
    return value in CONSTANTS or value.lstrip("-").isdigit()


@pytest.mark.parametrize("path", ALGORITHMS, ids=names(ALGORITHMS))
def test_a_file_loads_and_is_named_for_its_algorithm(path: Path) -> None:
    binding = load_toml(path, Binding)
    assert [binding.algorithm] == names([path])
    assert binding.library == ("cub" if path.parent == FOLDER else path.parent.name)
    assert binding.sites
    assert binding.benchmarks
    assert binding in load.bindings()


def test_all_files_are_loaded_by_name() -> None:
    """CUB's come first."""
    assert [binding.algorithm for binding in load.bindings()] == names(ALGORITHMS)


@cache
def validator(schema: str) -> jsonschema.Draft202012Validator:
    """Reads a schema once: to check it takes longer than to check a file by it."""
    text = (SCHEMAS / f"{schema}.schema.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    return jsonschema.Draft202012Validator(json.loads(text))


@pytest.mark.parametrize("path", FILES, ids=names(FILES))
def test_the_schema_accepts_a_file(path: Path) -> None:
    own = "binding-types" if path.parent == FOLDER else "binding-library-types"
    schema = validator(own if path.name == "types.toml" else "binding")
    with path.open("rb") as file:
        values = tomllib.load(file)
    schema.validate(values)
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(values | {"surprise": 1})


def test_types_and_delays_have_names_of_their_own() -> None:
    types = load.types()
    for version in VERSIONS:
        at = tuple(map(int, version.split(".")))
        for parts in (types.types, types.groups):
            counted = Counter(part.name for part in parts if part.covers(at))
            assert max(counted.values()) == 1
    assert Counter(delay.id for delay in types.delays) == dict.fromkeys([*range(8), None], 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_benchmark_has_one_binding_in_a_version(version: str) -> None:
    counted = Counter(
        b.name for algorithm in bound(BoundVersion(version)) for b in algorithm.benchmarks
    )
    assert [name for name, times in counted.items() if times > 1] == []
    assert len(counted) > 30


@pytest.mark.parametrize("version", VERSIONS)
def test_a_site_has_one_binding_in_a_version_and_a_dialect(version: str) -> None:
    for algorithm in bound(BoundVersion(version)):
        for dialect in ("specializations", "selectors"):
            counted = Counter(site.name for site in algorithm.sites if site.dialect == dialect)
            assert set(counted.values()) <= {1}, algorithm.algorithm
        families = Counter((family.site, family.name) for family in algorithm.families)
        assert set(families.values()) <= {1}, algorithm.algorithm


@pytest.mark.parametrize("version", VERSIONS)
def test_a_call_has_a_site_and_axes_that_are_known(version: str) -> None:
    dialect = "selectors" if version >= "3.5" else "specializations"
    for algorithm in bound(BoundVersion(version)):
        for call in (*algorithm.benchmarks, *algorithm.calls):
            where = f"{algorithm.algorithm}: {getattr(call, 'name', 'call')} at {call.site}"
            assert algorithm.site(call.site, dialect) or algorithm.site(
                call.site, "specializations" if dialect == "selectors" else "selectors"
            ), where
            for axis in call.axes:
                values = axis_values(call, axis, BoundVersion(version))
                assert len(set(values)) == len(values) > 0, where
                for value in values:
                    assert is_constant(value) or axis_type(value, BoundVersion(version)).cpp, where


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_benchmark_says_refers_to_what_it_has(version: str) -> None:
    for algorithm in bound(BoundVersion(version)):
        for benchmark in algorithm.benchmarks:
            known = {*benchmark.roles, *benchmark.constants}
            known |= {f"axis::{axis}" for axis in benchmark.axes}
            assert set(benchmark.units) <= set(benchmark.parameters), benchmark.name
            assert {unit.of for unit in benchmark.units.values()} <= known, benchmark.name
            assert set(benchmark.ignored) <= set(benchmark.axes), benchmark.name
            for span in benchmark.parameters.values():
                start, end, step = map(int, span.split(":"))
                assert start <= end, benchmark.name
                assert step > 0, benchmark.name


@pytest.mark.parametrize("version", VERSIONS)
def test_a_family_can_be_filled_from_the_benchmarks_of_its_site(version: str) -> None:
    """Each member's parameters are those of a benchmark, and its sizes those of a role."""
    for algorithm in bound(BoundVersion(version)):
        for family in algorithm.families:
            writers = [b for b in algorithm.benchmarks if b.site == family.site and b.writable]
            labels = {label for b in writers for label in b.parameters}
            roles = {role for b in writers for role in b.roles}
            for member, rule in family.members.items():
                where = f"{algorithm.algorithm}: {family.name}::{member}"
                asked = set(rule.delay or ()) | ({rule.parameter} if rule.parameter else set())
                assert asked <= labels or not writers, where
                assert rule.unit is None or rule.unit.of in roles or not writers, where
            assert family.mark in family.members, family.name


@pytest.mark.trees
@pytest.mark.parametrize("version", sampled(VERSIONS, "3.0.1", "3.6.0"))
def test_a_tree_has_what_is_bound(version: str) -> None:
    """Headers, namespaces and families, with as many arguments as are bound."""
    cub = trees.open_tree(cub_tree(version))
    scanned = scan_headers(trees.tuning_headers(cub))
    declared = {(f.header, f.namespace, f.name): f for h in scanned.headers for f in h.families}
    headers = {path.name for path in trees.tuning_headers(cub)}
    for algorithm in bound(BoundVersion(version)):
        assert {site.header for site in algorithm.sites} <= headers
        for binding in algorithm.families:
            site = algorithm.site(binding.site, "specializations")
            assert site is not None, binding.name
            family = declared[site.header, f"cub::{site.namespace}", binding.name]
            assert len(binding.args) == len(family.parameters)


@pytest.mark.parametrize(
    ("name", "version", "cpp", "size"),
    [
        ("C64", "2.8.2", "::cuda::std::complex<float>", 8),
        ("C64", "3.1.4", "::cuda::std::complex<float>", 8),
        ("C64", "3.2.0", "::cuda::std::complex<double>", 16),
        ("C64", "3.6.0", "::cuda::std::complex<double>", 16),
        ("C32", "3.2.0", "::cuda::std::complex<float>", 8),
        ("I8", "2.8.2", "::cuda::std::int8_t", 1),
        ("I8", "2.0.0", "::cuda::std::int8_t", 1),
        ("U128", "9.9.9", "__uint128_t", 16),
    ],
)
def test_a_type_is_what_a_version_means_by_it(name: str, version: str, cpp: str, size: int) -> None:
    found = axis_type(name, BoundVersion(version))
    assert (found.cpp, found.size) == (cpp, size)


@pytest.mark.parametrize(("name", "version"), [("C32", "3.1.4"), ("I7", "3.2.0"), ("", "3.0.1")])
def test_an_unknown_type_is_an_error(name: str, version: str) -> None:
    with pytest.raises(InputError) as raised:
        axis_type(name, BoundVersion(version))
    assert str(raised.value) == f"CUB {version} has no type named {name!r}"


def test_the_values_of_an_axis_are_a_list_or_a_group() -> None:
    call = Call(site="x", axes={"T": "all", "OffsetT": ("I32",), "U": "nothing"})
    assert axis_values(call, "OffsetT", BoundVersion("3.0.1")) == ("I32",)
    assert axis_values(call, "T", BoundVersion("3.1.4"))[-1] == "C64"
    assert axis_values(call, "T", BoundVersion("3.2.0"))[-1] == "C32"
    with pytest.raises(InputError) as raised:
        axis_values(call, "U", BoundVersion("3.0.1"))
    assert str(raised.value) == "CUB 3.0.1 has no group of axis values named 'nothing'"


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.7.9", False), ("2.8.0", True), ("3.6.4", True), ("3.7.0", False), ("10.0.0", False)],
)
def test_which_versions_were_tried(version: str, expected: bool) -> None:
    assert is_tested(version) is expected


@pytest.mark.parametrize(
    ("version", "nearest"), [("1.17.2", "2.8.0"), ("2.7.0", "2.8.0"), ("9.9.9", "3.6.99")]
)
def test_of_a_version_that_is_not_covered_the_nearest_one_holds(version: str, nearest: str) -> None:
    assert bound(BoundVersion(version)) == bound(BoundVersion(nearest))
    assert bound(BoundVersion(version))


def test_a_site_is_found_by_name_and_dialect() -> None:
    (radix,) = [one for one in bound(BoundVersion("3.5.0")) if one.algorithm == "radix_sort"]
    for dialect in ("specializations", "selectors"):
        site = radix.site("radix_sort", dialect)
        assert site is not None
        assert site.dialect == dialect
    assert radix.site("absent", "selectors") is None


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the bindings that is loaded instead, with a cache of its own."""
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(load, "folder", lambda name: tmp_path / name)
    shutil.copytree(FOLDER, tmp_path / "schemas" / "bindings")
    for kept in (load.types, load.bindings, load.bound):
        kept.cache_clear()
    yield tmp_path / "schemas" / "bindings"
    for kept in (load.types, load.bindings, load.bound):
        kept.cache_clear()


BINDING_KEYS = (
    "its keys are: algorithm, library, site, family, benchmark, selector, hub, call, run,"
    " workload, types"
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('algorithm = "merge"', "algorithm = 3", "algorithm: it should be a valid string"),
        ('algorithm = "merge"', 'algorithm = "merge"\nspeed = 1', "unknown key speed"),
        ("dialect = ", "accent = ", "site[0].dialect: it is missing; unknown key site[0].accent"),
        ('dialect = "specializations"', 'dialect = "English"', "site[0].dialect: it should be 'specializations', 'selectors' or 'configs'"),
        ("edit = ", "# edit = ", "benchmark[0]: a benchmark that is not writable must say what would have to be edited"),
    ],
)  # fmt: skip
def test_a_broken_file_names_itself_and_the_key(
    copied: Path, old: str, new: str, message: str
) -> None:
    path = copied / "merge.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        load.bindings()
    assert str(raised.value) == f"{path}: {message}\n  {BINDING_KEYS}"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{ }", "needs exactly one of parameter, delay and constant"),
        ('{ parameter = "ipt", constant = "4" }', "needs exactly one of parameter, delay and constant"),
        ('{ constant = "4", power_of_two = true }', "choices, power_of_two, unit, times, plus and bias belong to a parameter"),
    ],
)  # fmt: skip
def test_a_rule_has_one_form(copied: Path, rule: str, message: str) -> None:
    (copied / "zoom.toml").write_text(
        'algorithm = "zoom"\n'
        '[[family]]\nsite = "zoom"\nname = "sm90_tuning"\nargs = []\n'
        f"members = {{ items = {rule} }}\n"
    )
    with pytest.raises(InputError) as raised:
        load.bindings()
    assert str(raised.value) == (
        f"{copied}/zoom.toml: family[0].members.items: {message}\n  {BINDING_KEYS}"
    )


@pytest.mark.parametrize(
    "units",
    [
        '[[family]]\nsite = "zoom"\nname = "sm90_tuning"\nargs = []\n'
        'members = {{ items = {{ parameter = "ipt", unit = {unit} }} }}\n',
        '[[benchmark]]\nname = "cub.bench.zoom"\nsite = "zoom"\nparameters = {{ ipt = "7:24:1" }}\n'
        "units = {{ ipt = {unit} }}\n",
    ],
)
def test_a_scaling_that_there_is_not_is_refused(copied: Path, units: str) -> None:
    text = units.format(unit='{ scaling = "cache_bound", of = "T" }')
    (copied / "zoom.toml").write_text(f'algorithm = "zoom"\n{text}')
    with pytest.raises(InputError) as raised:
        load.bindings()
    assert str(raised.value) == (
        f"{copied}/zoom.toml: unknown scaling 'cache_bound'\n"
        "  Available: nominal_4b, nominal_4b_unbounded, mem_bound, reg_bound"
    )


def test_a_file_that_is_no_toml_names_the_place(copied: Path) -> None:
    (copied / "types.toml").write_text("tested = {\n")
    with pytest.raises(SourceError) as raised:
        load.types()
    assert str(raised.value).startswith(f"{copied}/types.toml:1:")


def test_an_algorithm_without_benchmarks_in_a_version_is_left_out(copied: Path) -> None:
    (copied / "zoom.toml").write_text(
        'algorithm = "zoom"\n'
        '[[benchmark]]\nname = "cub.bench.zoom"\nsite = "zoom"\nsince = "3.2"\nparameters = {}\n'
    )
    assert "zoom" not in [one.algorithm for one in bound(BoundVersion("3.1.4"))]
    assert "zoom" in [one.algorithm for one in bound(BoundVersion("3.2.0"))]


def test_what_was_read_once_is_not_parsed_again(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types, bindings = load.types(), load.bindings()
    for kept in (load.types, load.bindings, load.bound):
        kept.cache_clear()
    monkeypatch.setattr(load, "load_toml", lambda path, model: pytest.fail(f"{path} is parsed"))
    assert (load.types(), load.bindings()) == (types, bindings)


def test_a_changed_file_and_a_damaged_cache_are_read_anew(copied: Path) -> None:
    before = load.types()
    load.types.cache_clear()
    for path in (copied.parents[1] / "cache" / "bindings").iterdir():
        path.write_bytes(b"{")
    assert load.types() == before
    load.types.cache_clear()
    text = (copied / "types.toml").read_text()
    (copied / "types.toml").write_text(text.replace("3.7", "3.9", 1))
    assert load.types().tested.below == "3.9"


def test_a_cache_that_cannot_be_written_does_not_matter(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copied / "file").touch()
    monkeypatch.setenv("POLICYGEN_CACHE", str(copied / "file"))
    assert load.types() == load_toml(FOLDER / "types.toml", Types)
