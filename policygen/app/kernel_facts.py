"""What is kept of a kernel of one's own besides the times of its variants."""

from policygen.bindings.own_kernel import taken_kernel
from policygen.measure.control import Controller
from policygen.measure.database import MeasuringSession
from policygen.measure.launches import keep_peak, keep_start, keep_words
from policygen.model.labels import as_label


def keep_kernel(rows: MeasuringSession) -> None:
    """Writes what numbers in labels stand for."""
    maker = taken_kernel()
    if maker is None:
        return
    every = maker.given.every_parameter
    words = {label: one.words for label, one in every.items() if one.words}
    for name in maker.names:
        keep_words(rows.writer, name, words)
        keep_start(rows.writer, name, maker.name, as_label(maker.start))


def keep_bandwidth(rows: MeasuringSession, controller: Controller) -> None:
    """Measures once how fast memory is copied, which times of kernels are put beside."""
    if taken_kernel() is not None and (found := controller.bandwidth()) is not None:
        keep_peak(rows.writer, rows.number, found)
