"""Sample blobs: fpzip-compressed float32 arrays of seconds, sorted."""

from typing import Any

import numpy as np

from policygen.results.fpzip_header import count_samples

Samples = np.ndarray[Any, np.dtype[np.float64]]


class BadSamplesError(ValueError):
    """A blob that cannot be decoded, with the reason."""


def decode(blob: object) -> Samples:
    """The samples of one row, sorted. On damaged blobs this can crash: see `Decoder`."""
    import fpzip

    try:
        count_samples(blob)
    except ValueError as error:
        raise BadSamplesError(str(error)) from error
    try:
        values = np.asarray(fpzip.decompress(blob), dtype=np.float64).reshape(-1)
    except Exception as error:
        # fpzip raises its own kinds, and plain ones, for what it refuses.
        raise BadSamplesError(f"fpzip refuses them: {error}") from error
    if not values.size or not np.all(np.isfinite(values)) or values.min() <= 0:
        raise BadSamplesError("they are not positive and finite")
    return np.sort(values)


def middle(values: Samples) -> float:
    """The median of samples, which are sorted."""
    below, above = values[(values.size - 1) // 2], values[values.size // 2]
    return float(below + above) / 2


def encode(values: Samples) -> bytes:
    """The blob of some samples, as CCCL's search writes it."""
    import fpzip

    return bytes(fpzip.compress(np.sort(np.asarray(values, dtype=np.float32))))
