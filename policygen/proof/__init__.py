"""Asks the compiler: what is selected, and what changed."""
