"""Finds the best variants of workloads: what to try next, and how sure one must be."""
