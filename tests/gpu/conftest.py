"""A cluster for the tests of a module."""

import pytest

from tests.gpu import clustered


@pytest.fixture(scope="module")
def cluster_of_module(tmp_path_factory):
    with clustered.running(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def cluster(cluster_of_module):
    """Its workers are as new."""
    cluster_of_module.reset()
    return cluster_of_module
