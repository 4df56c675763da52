"""What a search tries first: what CUB selects here and elsewhere, and what won before."""

import json
import sqlite3
from contextlib import closing

import pytest

from policygen import open_session
from policygen.app.filters import Filter
from policygen.app.measured_workloads import chosen_workloads, open_workloads
from policygen.app.search import MOST, earlier_labels, selected_policies, starts_of
from policygen.cli.main import main
from policygen.gpu.space import Classifier, nearest_values
from tests.app.searched import WHICH, pretend
from tests.real_trees import tree

SORT = Filter((), "cub.bench.radix_sort.keys$", ("T=I16", "OffsetT=I32"), ())


@pytest.fixture(scope="module")
def sorting():
    """A session, and radix sort's workload of two bytes on sm90."""
    session = open_session(str(tree("3.6.0")))
    return session, open_workloads(session, chosen_workloads(session, SORT), "sm90")


@pytest.mark.slow
def test_base_is_one_of_the_variants_where_the_space_has_it(sorting):
    (opened,) = sorting[1].values()
    classifier = Classifier(opened.space, opened.meaning)
    values, same = nearest_values(classifier, opened.meaning.base)
    assert same
    named = dict(zip(opened.space.labels, values, strict=True))
    assert classifier.policy(named) == opened.meaning.base


@pytest.mark.slow
def test_what_other_types_and_architectures_get_is_known(sorting):
    session, opened = sorting
    (policies,) = selected_policies(session, opened, "sm90").values()
    assert policies[0] == next(iter(opened.values())).meaning.base
    assert len({tuple(one.items()) for one in policies}) > 3


@pytest.mark.slow
def test_the_nearest_variants_of_policies_come_once_and_base_first(sorting):
    session, opened = sorting
    ((_, one),) = opened.items()
    (policies,) = selected_policies(session, opened, "sm90").values()
    classifier = Classifier(one.space, one.meaning)
    found = starts_of(classifier, policies)
    assert found[0] == nearest_values(classifier, one.meaning.base)[0]
    assert 1 < len(found) == len(set(found)) <= MOST


@pytest.mark.slow
def test_the_best_of_an_earlier_database_follow_the_neighbors_of_base(
    tmp_path, monkeypatch, capsys
):
    pretend(tmp_path, monkeypatch)
    which = ["search", "--cub", str(tree("3.6.0")), *WHICH, "--processes", "2", "--jobs", "1", "-q"]
    old, new = str(tmp_path / "old.db"), str(tmp_path / "new.db")
    assert main([*which, "--db", old, "--variants", "30"]) == 0
    (labels,) = earlier_labels([tmp_path / "old.db"]).values()
    assert len(labels) == 8
    assert main([*which, "--db", new, "--variants", "60", "--start-db", old, "--json"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["workloads"][0]["counts"]["tried"] == 60
    with closing(sqlite3.connect(new)) as connection:
        rows = connection.execute("SELECT DISTINCT variant FROM policygen_rungs WHERE rung = 1")
        assert set(labels) <= {variant for (variant,) in rows}
