"""One store for all tests and all workers: what one of them compiled, no other compiles again.

It is found by content, so that it may outlive a run. A test that needs an empty one makes its own.
"""

import os
import signal
from collections import Counter

import pytest

from policygen.gpu import machine
from policygen.paths import cache_folder
from policygen.results import samples
from policygen.results.samples import framed, read_part
from tests.left_out import TIERS, counted, sentences, unwanted
from tests.thirds import chosen, further

if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker has its environment from the first process
    os.environ["POLICYGEN_CACHE"] = str(cache_folder() / "tests")
os.environ.pop("CUDA_HOME", None)  # what is compiled with does not depend on the machine
# What a shell starts behind itself ignores an interrupt, and so does all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Tests start policygen hundreds of times: it is not compiled to bytecode each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True, scope="session")
def _decoders_go_on():
    """A process that decoded for one test decodes for the next: to start takes longer than that.

    One command has one of its own, so that no database can harm what is read of another.
    """
    kept, start, stop, usual = [], samples._start, samples._stop, samples.WORKER

    def lent():
        while kept and usual == samples.WORKER:
            worker = kept.pop()
            if _answers(worker.process):
                return worker
            stop(worker)
        return start()

    def given_back(worker):
        (kept.append if usual == samples.WORKER else stop)(worker)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(samples, "_start", lent)
        patched.setattr(samples, "_stop", given_back)
        yield
    for worker in kept:
        stop(worker)


def _answers(process):
    """Whether it does what it is asked: it may have crashed, or have answers left."""
    try:
        process.stdin.write(framed(b"junk"))
        process.stdin.flush()
        return read_part(process.stdout) == b"-not an fpzip blob"
    except (BrokenPipeError, ValueError):
        return False


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path_factory):
    """The GPUs of tests are made up, and called the same in tests that run beside each other."""
    place = tmp_path_factory.getbasetemp() / "locks"
    place.mkdir(exist_ok=True)
    place.chmod(0o1777)
    monkeypatch.setattr(machine, "PLACES", (place, place))


LEFT = pytest.StashKey[Counter[str]]()
"""How many tests of each tier were left out."""


def pytest_configure(config):
    config.stash[LEFT] = Counter()


def pytest_deselected(items):
    for config in {item.config for item in items}:
        config.stash[LEFT] += counted(map(markers, items), unwanted(config.option.markexpr))


def markers(item):
    return {marker.name for marker in item.iter_markers()}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Leaves to other runs further cases, and what is not in the third that THIRD asks for."""
    cases = [item for item in items if markers(item) & {"slow", "thorough"} == {"slow"}]
    thorough = further(item.nodeid for item in cases)
    for item in cases:
        if item.nodeid in thorough:
            item.add_marker("thorough")
    yield  # `-m` takes its part
    slow = {item.nodeid for item in items if item.get_closest_marker("slow")}
    left = slow - chosen(slow, os.environ.get("THIRD", ""), config.rootpath)
    if left:
        rest = [item for item in items if item.nodeid in left]
        items[:] = [item for item in items if item.nodeid not in left]
        config.hook.pytest_deselected(items=rest)
        config.stash[LEFT] += counted(map(markers, rest), TIERS)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # behind all that others say
def pytest_sessionfinish(session):
    """A worker tells the first process what it left out, and that tells the reader."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = dict(session.config.stash[LEFT])
    result = yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal and not hasattr(session.config, "workeroutput"):
        for sentence in sentences(session.config.stash[LEFT]):
            terminal.write_line(sentence)
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Each worker leaves out the same; one that died told nothing."""
    node.config.stash[LEFT] |= Counter(getattr(node, "workeroutput", {}).get("left", {}))
