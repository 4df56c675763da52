import pytest

from policygen.proof.sass.archs import tuned, unread
from policygen.source.scan import read_changed
from tests.probing import TUNINGS, header, root

pytestmark = pytest.mark.trees

ARCHS = ("sm75", "sm80", "sm89", "sm90", "sm100", "sm103", "sm120")
SCAN = "tuning_scan.cuh"
SM90 = ("float,  128, 24, 688, 1140", "float,  128, 20, 688, 1140")


def read(data):
    return read_changed(root("3.0.1") / TUNINGS / SCAN, data)


@pytest.mark.parametrize(
    ("change", "families", "archs"),
    [
        (SM90, ["sm90_tuning"], ["sm75", "sm80", "sm89", "sm100", "sm103", "sm120"]),
        (("namespace detail", "// a comment\nnamespace detail"), [], list(ARCHS)),
    ],
)
def test_a_change_is_for_the_families_that_say_something_else(change, families, archs):
    before = read(header("3.0.1", SCAN))
    data = header("3.0.1", SCAN).replace(change[0].encode(), change[1].encode(), 1)
    after = read(data)
    found = tuned([before], [after])
    assert [family.name for family in found] == families
    assert list(unread(found, [after], ARCHS)) == archs


def test_a_new_family_is_a_change():
    before = read(header("3.0.1", SCAN))
    assert {f.arch for f in tuned([], [before])} == {"sm80", "sm90", "sm100"}
