import pytest


@pytest.fixture(scope="session")
def probe_cache(tmp_path_factory):
    """One cache for all tests that compile: what one has asked, another one need not."""
    return tmp_path_factory.getbasetemp() / "probe-cache"
