"""What of a change is planned again without its losses."""

from types import SimpleNamespace

import pytest

from policygen.app import performance
from policygen.app.performance import narrow_plan
from policygen.errors import InputError


def test_a_change_without_a_plan_cannot_be_narrowed(monkeypatch):
    base = SimpleNamespace(label="CUB 3.0.1, HEAD", plan=None)
    for before, name in ((None, "policygen.db"), (base, "CUB 3.0.1, HEAD")):
        monkeypatch.setattr(performance, "find_base", lambda *_, before=before: before)
        with pytest.raises(InputError, match=f"^{name}: no plan to narrow"):
            narrow_plan(SimpleNamespace(store="policygen.db"), document=None)
    base.plan = object()
    monkeypatch.setattr(performance, "find_base", lambda *_: base)
    monkeypatch.setattr(performance, "_slower_workloads", lambda _: ())
    assert narrow_plan(SimpleNamespace(store="policygen.db"), document=None) is None
