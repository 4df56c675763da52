"""How many values an fpzip blob holds, told without decoding it.

fpzip believes what its header says: a damaged one makes it take gigabytes of memory, or crash. The
header is range-coded: `fpz`, the version in 16 and 8 bits, the type in 1, the precision in 7, and
four dimensions in 32 bits each.
"""

import math

MOST = 1 << 24
"""No search takes as many samples of one row."""
DENSEST = 4_000
"""Samples in one byte; equal ones came to 3,600."""
_TOP = (1 << 32) - 1


class _Decoder:
    """fpzip's range decoder, for plain bits only."""

    def __init__(self, blob: bytes) -> None:
        self._rest = iter(blob)
        self._low, self._range = 0, _TOP
        self._code = 0
        self._shift(4)

    def bits(self, count: int) -> int:
        """The next bits; the lower half of 32 comes first."""
        if count > 16:
            return self.bits(16) | self.bits(count - 16) << 16
        self._range >>= count
        value = ((self._code - self._low) & _TOP) // self._range
        self._low = (self._low + self._range * value) & _TOP
        self._normalize()
        return value

    def _normalize(self) -> None:
        while not (self._low ^ (self._low + self._range)) >> 24 & 0xFF:
            self._shift(1)
            self._range = self._range << 8 & _TOP
        if not self._range >> 16:
            self._shift(2)
            self._range = -self._low & _TOP

    def _shift(self, count: int) -> None:
        for _ in range(count):
            self._code = (self._code << 8 | next(self._rest, 0)) & _TOP
            self._low = self._low << 8 & _TOP


def count_samples(blob: object) -> int:
    """The number of samples; refuses what is no blob of plausible size."""
    if not isinstance(blob, bytes) or not blob:
        raise ValueError("no samples")
    decoder = _Decoder(blob)
    magic = bytes(decoder.bits(8) & 0xFF for _ in range(4))
    if magic != b"fpz\0":
        raise ValueError("no fpzip blob")
    for width in (16, 8, 1, 7):
        decoder.bits(width)
    count = math.prod(decoder.bits(32) for _ in range(4))
    if count > min(MOST, DENSEST * len(blob)):
        raise ValueError(f"they claim to be {count:,}, in {len(blob):,} bytes")
    return count
