"""policygen turns GPU tuning results into CUB's tuning policies, with proof."""

__version__ = "0.1.0"
