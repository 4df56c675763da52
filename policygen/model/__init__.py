"""The vocabulary: CUB's words as frozen values; no I/O."""
