"""Finds the best variants of workloads: what to try next, how sure one must be, and when to stop."""
