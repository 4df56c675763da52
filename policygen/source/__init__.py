"""Bytes of headers and benchmarks to the model; libclang lives here alone."""
