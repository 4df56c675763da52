"""Measures a change: what is faster after it, what is equal, what is slower, what is not known."""
