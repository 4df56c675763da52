"""Ratios at quantiles."""

import numpy as np
import pytest

from policygen.model.searches import QUANTILES
from policygen.results.export import LEAST, quantile_ratios


def test_a_side_that_is_twice_as_fast_is_so_at_each_quantile():
    base = np.linspace(1, 2, 100)
    assert quantile_ratios(base, base / 2) == pytest.approx([2] * len(QUANTILES))


def test_a_tail_is_seen_at_the_last_quantiles_alone():
    base, own = np.ones(100), np.concatenate([np.ones(90), np.full(10, 2.0)])
    found = dict(zip(QUANTILES, quantile_ratios(base, own), strict=True))
    assert (found[0.5], found[0.99]) == (1, 0.5)


@pytest.mark.parametrize("sides", [(LEAST - 1, 100), (100, LEAST - 1), (0, 0)])
def test_too_few_samples_have_none(sides):
    base, own = map(np.ones, sides)
    assert quantile_ratios(base, own) == ()


def test_a_plot_draws_what_there_is():
    ratios = quantile_ratios(np.ones(1), np.full(2, 0.5), least=1)
    assert ratios == pytest.approx([2] * len(QUANTILES))
