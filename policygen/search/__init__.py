"""Finds the best variants of workloads: what to try next, how sure to be, and when to stop."""
