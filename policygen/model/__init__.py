"""CUB's vocabulary as immutable records; no I/O."""
