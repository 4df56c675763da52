"""One store for all tests and all workers: what one of them compiled, no other compiles again.

It is found by content, so that it may outlive a run. A test that needs an empty one makes its own.
"""

import os

import pytest

from policygen.measure import locks
from policygen.paths import cache_folder

if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker has its environment from the first process
    os.environ["POLICYGEN_CACHE"] = str(cache_folder() / "tests")
os.environ.pop("CUDA_HOME", None)  # what is compiled with does not depend on the machine
# Tests start policygen hundreds of times: it is not compiled to bytecode each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path_factory):
    """The GPUs of tests are made up, and called the same in tests that run beside each other."""
    place = tmp_path_factory.getbasetemp() / "locks"
    place.mkdir(exist_ok=True)
    place.chmod(0o1777)
    monkeypatch.setattr(locks, "PLACES", (place, place))
