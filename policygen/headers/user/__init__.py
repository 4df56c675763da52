"""Generates a user's own policy selectors for CUB's public API."""
