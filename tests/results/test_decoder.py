"""The far side of the decoder, in this process."""

import io

import numpy as np
import pytest

from policygen.results import samples
from policygen.results.samples import BadSamplesError, decode, encode, framed, read_part, serve


def test_samples_come_back_sorted_and_as_they_were():
    values = np.random.default_rng(1).lognormal(size=50)
    assert decode(encode(values)) == pytest.approx(np.sort(values), rel=1e-6)


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", "no samples"),
        (None, "no samples"),
        (b"junk that is long enough to be a header", "not an fpzip blob"),
        (encode(np.array([1.0, np.inf])), "they are not positive and finite"),
        (encode(np.array([0.0, 1.0])), "they are not positive and finite"),
    ],
)
def test_what_are_no_samples_is_refused(blob, reason):
    with pytest.raises(BadSamplesError, match=reason):
        decode(blob)


def test_what_fpzip_refuses_is_told(monkeypatch):
    monkeypatch.setattr(samples, "count_samples", lambda _: 1)
    with pytest.raises(BadSamplesError, match="fpzip refuses them: "):
        decode(b"junk")


def test_the_worker_answers_each_blob():
    asked = framed(encode(np.array([2.0, 1.0]))) + framed(b"junk")
    answered = io.BytesIO()
    serve(io.BytesIO(asked), answered)
    answered.seek(0)
    first, second = read_part(answered), read_part(answered)
    assert list(np.frombuffer(first, np.float64, offset=1)) == [1.0, 2.0]
    assert second == b"-not an fpzip blob"
    assert read_part(answered) is None


@pytest.mark.parametrize("rest", [b"", b"\1\0", framed(b"whole")[:-1]])
def test_half_a_part_is_none(rest):
    assert read_part(io.BytesIO(rest)) is None
    assert samples.LENGTH == 4
