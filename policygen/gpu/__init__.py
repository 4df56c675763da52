"""Measures variants on GPUs, searches for the best ones, and judges changes."""
