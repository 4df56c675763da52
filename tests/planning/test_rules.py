"""Each rule by itself: what it revises an attempt for, and that it leaves other attempts alone."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from policygen.errors import EffectError, InputError
from policygen.headers.dialects import Draft, NotWritableError
from policygen.headers.protocol import NotKeptError
from policygen.model.plans import Options
from policygen.model.selection import Delta, DeltaRow
from policygen.planning import plan
from policygen.planning.places import FixedValues, bounded
from policygen.planning.plan import Attempt

A, B = ("cub.bench.a", (("T{ct}", "I8"),)), ("cub.bench.b", (("T{ct}", "I8"),))
NOTHING = Delta((), 0, ())


@dataclass
class Placed:
    measurement: object
    spot: object = None
    fixed: object = None
    said: object = None
    is_bounded: bool = False


def case(point, **values):
    return Placed(SimpleNamespace(point=point), **values)


def write(point, **spot):
    spot = SimpleNamespace(**{"unsure": False, "ahead": False, **spot})
    content = SimpleNamespace(added=())
    return SimpleNamespace(points=[point], spots=[spot], content=content, header="a.cuh")


def row(point, arch="sm90"):
    return DeltaRow(*point, arch, {"threads": 1}, {"threads": 2})


def trial(attempt, **values):
    outcome = SimpleNamespace(actions=[], writes=[])
    usual = {"outcome": outcome, "arch": "sm90", "placed": attempt.cases, "compared": NOTHING}
    usual |= {"after": {}}
    return SimpleNamespace(attempt=attempt, **{**usual, **values})


@pytest.fixture
def attempt():
    return Attempt([case(A), case(B)], {})


def test_a_result_without_the_one_it_is_chosen_with_is_rejected(attempt, monkeypatch):
    monkeypatch.setattr(plan, "unmet", lambda cases, actions: {A: "b is missing"})
    assert plan.refuse_without_needed(trial(attempt)).rejected == {A: "b is missing"}
    monkeypatch.setattr(plan, "unmet", lambda cases, actions: {})
    assert plan.refuse_without_needed(trial(attempt)) is None


def test_what_has_no_place_is_rejected(attempt):
    error = NotWritableError([(write(A), InputError("no place"))])
    revised = plan.refuse_unwritable(trial(attempt, written=error))
    assert revised.rejected == {A: "no place"}
    assert revised.cases == attempt.cases
    assert plan.refuse_unwritable(trial(attempt, written=Draft({}, {}))) is None


def test_an_extension_that_has_no_place_is_taken_back_and_its_result_stays(monkeypatch):
    placed = [case(A, spot="as placed"), case(B, spot="as placed")]
    said = {"load": "ldg"}
    extended = [case(A, spot="extended", said=said), case(B, spot="as placed", said=said)]
    error = NotWritableError([(write(A), InputError("no place"))])
    tried = trial(Attempt(extended, {}), written=error, placed=placed)
    revised = plan.refuse_unwritable(tried)
    fixed = FixedValues({"load": "ldg"}, "no place")
    assert revised.cases == [case(A, spot="as placed", fixed=fixed), extended[1]]
    assert revised.rejected == {}


def test_an_added_entry_with_which_the_header_does_not_compile_is_rejected(attempt):
    outcome = SimpleNamespace(actions=[], writes=[write(A, unsure=True), write(B)])
    values = {"compiled": EffectError(["it does not compile"]), "outcome": outcome}
    revised = plan.refuse_uncompiled(trial(attempt, **values))
    assert revised.rejected == {A: "the header does not compile with a family for it"}
    assert plan.refuse_uncompiled(trial(attempt, compiled=NOTHING)) is None


def test_a_header_that_does_not_compile_without_an_added_entry_is_an_error(attempt):
    outcome = SimpleNamespace(actions=[], writes=[write(A)])
    broken = EffectError(["it does not compile"])
    with pytest.raises(EffectError) as raised:
        plan.refuse_uncompiled(trial(attempt, compiled=broken, outcome=outcome))
    assert raised.value is broken


def test_an_entry_is_extended_by_what_it_does_not_express(attempt, monkeypatch):
    tried = trial(attempt, unsaid={A: {"load": "ldg"}})
    monkeypatch.setattr(plan, "said_in_full", lambda cases, values: [case(A, said=values[A])])
    assert plan.say_in_full(tried).cases == [case(A, said={"load": "ldg"})]
    monkeypatch.setattr(plan, "said_in_full", lambda cases, values: None)
    assert plan.say_in_full(tried) is None


def test_another_variant_is_looked_for_where_no_entry_can_express_it(attempt, monkeypatch):
    fixed = FixedValues({"load": "ldg"}, "the family cannot express it")
    tried = trial(attempt, unsaid={})
    monkeypatch.setattr(plan, "unsayable", lambda *_: {A: fixed})
    assert plan.leave_unsayable(tried).cases == [case(A, fixed=fixed), case(B)]
    monkeypatch.setattr(plan, "unsayable", lambda *_: {})
    assert plan.leave_unsayable(tried) is None


@pytest.mark.parametrize("finder", ["not_as_written", "harmed", "strayed"])
def test_what_has_another_effect_is_rejected(attempt, monkeypatch, finder):
    for name in ("not_as_written", "harmed", "strayed"):
        monkeypatch.setattr(plan, name, lambda *_, own=name: {A: own} if own == finder else {})
    assert plan.refuse_without_effect(trial(attempt)).rejected == {A: finder}


def test_what_has_its_effect_and_no_other_is_left_alone(attempt):
    assert plan.refuse_without_effect(trial(attempt)) is None


def test_an_entry_that_changes_what_nobody_measured_is_narrowed(attempt):
    measurement = SimpleNamespace(point=A, benchmark=SimpleNamespace(name=A[0]))
    attempt = Attempt([Placed(measurement, SimpleNamespace(narrower="for its type alone"))], {})
    outcome = SimpleNamespace(actions=[], writes=[write(A)])
    revised = plan.narrow_to_measured(trial(attempt, shared=[row(A)], outcome=outcome))
    assert [placed.spot for placed in revised.cases] == ["for its type alone"]
    assert plan.narrow_to_measured(trial(attempt, shared=[], outcome=outcome)) is None


def test_what_changes_later_architectures_is_bounded_or_rejected(attempt, monkeypatch):
    outcome = SimpleNamespace(actions=[], writes=[write(A), write(B)])
    error = NotKeptError([(row(A, "sm100"), "no entry"), (row(B, "sm100"), "no entry")])
    planner = SimpleNamespace(dialect=None)
    monkeypatch.setattr(
        plan,
        "bounded",
        lambda cases, reasons, dialect: [replace(cases[0], is_bounded=True), cases[1]],
    )
    values = {"kept": error, "outcome": outcome, "planner": planner}
    revised = plan.bound_to_arch(trial(attempt, **values))
    assert revised.cases == [case(A, is_bounded=True), case(B)]
    assert revised.rejected == {B: "no entry. Let later architectures inherit: --reaches sm100"}
    assert plan.bound_to_arch(trial(attempt, kept=(outcome, Draft({}, {}), []))) is None
    # One that is bounded already is not rejected before the others are.
    again = Attempt([case(A), case(B, is_bounded=True)], {})
    revised = plan.bound_to_arch(trial(again, **values))
    assert revised.rejected == {}
    assert [placed.is_bounded for placed in revised.cases] == [True, True]
    monkeypatch.setattr(plan, "bounded", lambda cases, reasons, dialect: None)
    assert revised.rejected.keys() < plan.bound_to_arch(trial(again, **values)).rejected.keys()


def test_what_changes_other_inputs_on_later_architectures_is_bounded_or_rejected(
    attempt, monkeypatch
):
    """Of two entries in a header, the one that does it alone."""
    outcome = SimpleNamespace(actions=[], writes=[write(A), write(B)])
    planner = SimpleNamespace(dialect=None, drafted=lambda writes: writes[0].points[0])
    leaks = {None: {"a.cuh": "it changes sums"}, A: {}, B: {"a.cuh": "it changes sums"}}
    values = {"kept": (outcome, None, []), "outcome": outcome, "planner": planner}
    monkeypatch.setattr(plan, "bounded", lambda cases, reasons, dialect: None)
    revised = plan.bound_other_inputs(trial(attempt, leaks=leaks.get, **values))
    assert revised.rejected == {B: "it changes sums"}
    monkeypatch.setattr(
        plan, "bounded", lambda cases, reasons, dialect: [cases[0], replace(cases[1], spot=1)]
    )
    revised = plan.bound_other_inputs(trial(attempt, leaks=leaks.get, **values))
    assert [placed.spot for placed in revised.cases] == [None, 1]
    assert plan.bound_other_inputs(trial(attempt, leaks=lambda _: {}, **values)) is None


def test_an_attempt_that_is_rejected_from_keeps_what_was_rejected_before(attempt):
    assert attempt.reject({A: "one"}).reject({B: "two"}).rejected == {A: "one", B: "two"}


def test_workloads_of_one_entry_are_bounded_together():
    """Also those that keep what they have: the new entry would take them."""
    spots = [SimpleNamespace(place=place) for place in ("one", "one", "another")]
    points = [A, B, ("cub.bench.c", ())]
    cases = [
        Placed(SimpleNamespace(point=point, benchmark=None), spot)
        for point, spot in zip(points, spots, strict=True)
    ]
    dialect = SimpleNamespace(bounded=lambda _, spot: f"before sm100: {spot.place}")
    moved = bounded(cases, {B}, dialect)
    assert {case.measurement.point for case in moved if case.is_bounded} == {A, B}
    assert [case.spot for case in moved] == ["before sm100: one", "before sm100: one", spots[2]]
    assert bounded(cases, {B}, SimpleNamespace(bounded=lambda _, spot: None)) is None


def test_later_architectures_inherit_only_where_that_is_allowed():
    assert Options(arch="sm90").keeps("sm100")
    allowed = Options(arch="sm90", reaches=("sm100",))
    assert [allowed.keeps(arch) for arch in ("sm100", "sm103")] == [False, True]
    assert not Options(arch="sm90", reach="later").keeps("sm103")
