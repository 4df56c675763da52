"""Reads and writes C++ headers: one syntax layer, the dialects, benchmark sources."""
