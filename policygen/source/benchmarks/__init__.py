"""Benchmark sources: what there is to tune, and on which workloads."""
