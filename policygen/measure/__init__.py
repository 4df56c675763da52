"""Measures on a GPU what variants are worth: units, the process that runs them, noise, rows."""
