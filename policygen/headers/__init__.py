"""Reads and writes C++ headers: the syntax layer, the dialects and the benchmark sources."""
