"""What is written of databases: what is asked for, and what is known besides."""

import pytest

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, choose_rules, ranked
from policygen.errors import InputError
from policygen.model.trees import BoundVersion
from policygen.results.cases import NOT_ASKED
from policygen.steps import discard_note
from tests.results.build import Builder
from tests.results.measured import MEASURED

REDUCE = str(MEASURED / "A_reduce_sum/cccl_meta_bench.db")
SIZES = ("16", "20", "24", "28")


def made(path, **speeds):
    built = Builder(path).table()
    for name, speed in {"base": 1.0, **speeds}.items():
        built.rows(name, dict.fromkeys(SIZES, 1 / speed), "I32")
    return str(path)


def choices(*files, confirm=(), **rules):
    with ranked(ResultFiles(files, confirm=confirm), choose_rules(**rules), discard_note) as found:
        return [one.choice for one in found.top.workloads]


def test_a_filter_limits_what_is_written_and_never_what_is_known():
    asked = ResultFiles([REDUCE], where=Filter(axes=("T{ct}=F32",)))
    with ranked(asked, choose_rules(), discard_note) as found:
        assert [one.workload["T{ct}"] for one in found.top.workloads] == ["F32"]
        both = found.workloads(BoundVersion("3.0.1"))
        assert [one.workload["T{ct}"] for one in both] == ["F32", "I32"]
        assert both[1].choice.reason == NOT_ASKED
        assert both[1].variants[0].variant == "ipt_16.tpb_256.ipv_2"
        # They share an entry, which is chosen for by the rows of both.
        assert (
            found.choose(both).reason
            == "the rules reject every variant that was measured for all of them"
        )


def test_a_filter_that_leaves_nothing_is_an_error():
    with (
        pytest.raises(InputError, match="nothing matches"),
        ranked(
            ResultFiles([REDUCE], where=Filter(regex="cub.bench.scan")),
            choose_rules(),
            discard_note,
        ),
    ):
        pass


def test_what_no_other_run_confirms_is_not_written_unless_that_is_accepted(tmp_path):
    search = made(tmp_path / "search", ipt_1=1.04)
    again, bad = made(tmp_path / "again", ipt_1=1.035), made(tmp_path / "bad", ipt_1=0.99)
    (held,) = choices(search)
    assert (held.decision, held.reason.partition(":")[0]) == ("keep base", "unconfirmed")
    (accepted,) = choices(search, accept_unconfirmed=True)
    assert (accepted.decision, accepted.unconfirmed) == ("use", True)
    (confirmed,) = choices(search, confirm=[again])
    assert (confirmed.decision, confirmed.unconfirmed) == ("use", False)
    assert [one.decision for one in choices(search, confirm=[bad])] == ["keep base"]
    assert choices(search, confirm=[again, bad])[0].decision == "keep base"
    assert choices(made(tmp_path / "large", ipt_1=1.1))[0].decision == "use"
