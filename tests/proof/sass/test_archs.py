# ruff: noqa: E501  a row of a table is one line
import pytest

from policygen.headers.scan import read_changed
from policygen.model.plans import Action, Options, Plan, Reached, Target
from policygen.proof.kernel_units import left_alone, tuned, unread
from tests.probing import TUNINGS, header, replaced, root
from tests.real_trees import rocprim_tree
from tests.rocprim.places import CONFIGS, REDUCE, text_of

pytestmark = pytest.mark.trees

ARCHS = ("sm75", "sm80", "sm89", "sm90", "sm100", "sm103", "sm120")
FIND, SCAN = "tuning_find.cuh", "tuning_scan.cuh"
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


@pytest.mark.parametrize(
    ("change", "archs"),
    [
        (("Policy{2, 88 - 1, 7, -2, -2}", "Policy{2, 88 - 1, 6, -2, -2}"), ["sm80", "sm90", "sm100", "sm110", "sm120"]),
        (("Policy{2, 88 - 1, 5}", "Policy{2, 88 - 1, 4}"), ["sm80", "sm90"]),
    ],
)  # fmt: skip
def test_a_guarded_return_is_for_its_architectures_and_those_that_fall_through(change, archs):
    data = header("3.6.0", SCAN)
    path = root("3.6.0") / TUNINGS / SCAN
    after = read_changed(path, replaced(data, change))
    found = tuned([read_changed(path, data)], [after])
    assert {family.name for family in found} == {"policy_selector::get_lookahead_policy"}
    asked = ("sm80", "sm90", "sm100", "sm107", "sm110", "sm120")
    assert list(unread(found, [after], asked)) == archs


def test_what_becomes_a_default_of_a_new_condition_is_no_change():
    data = header("3.6.0", FIND)
    path = root("3.6.0") / TUNINGS / FIND
    guard = (
        "if (cc >= ::cuda::compute_capability{9, 0} && cc < ::cuda::compute_capability{10, 0})"
        " { if (input_type_size == 4) { return FindIfPolicy{128, 8, 4, LOAD_LDG}; } }"
    )
    place = "const auto scaled"
    changed = replaced(
        data, (place, f"{guard}\n{place}"), ("capability) const", "capability cc) const")
    )
    after = read_changed(path, changed)
    differing = tuned([read_changed(path, data)], [after])
    assert unread(differing, [after], ("sm80", "sm90", "sm100")) == ("sm80", "sm100")


def test_a_new_family_is_a_change():
    before = read(header("3.0.1", SCAN))
    assert {f.arch for f in tuned([], [before])} == {"sm80", "sm90", "sm100"}


def plan(arch, reach, namespace="cub::detail::scan"):
    """A plan that writes an entry of scan."""
    target = Target.model_construct(header=SCAN, namespace=namespace)
    action = Action.model_construct(target=target, after={"items": 20})
    return Plan.model_construct(options=Options(arch=arch, reach=reach), actions=(action,))


@pytest.mark.parametrize(
    ("arch", "reach", "archs"),
    [
        # The chain of scan has policies of sm75, sm80, sm86, sm90 and sm100.
        ("sm90", "only", ["sm75", "sm80", "sm89", "sm100", "sm103", "sm120"]),
        ("sm90", "later", ["sm75", "sm80", "sm89"]),
        ("sm80", "only", ["sm75", "sm89", "sm90", "sm100", "sm103", "sm120"]),
        ("sm100", "only", ["sm75", "sm80", "sm89", "sm90"]),
        ("sm120", "only", ["sm75", "sm80", "sm89", "sm90", "sm100", "sm103"]),
    ],
)
def test_a_plan_leaves_alone_what_is_earlier_and_what_has_a_policy_of_its_own(arch, reach, archs):
    headers = [read(header("3.0.1", SCAN))]
    assert list(left_alone(plan(arch, reach), headers, ARCHS)) == archs


def test_without_a_chain_in_its_namespace_nothing_later_is_left_alone():
    headers = [read(header("3.0.1", SCAN))]
    assert list(left_alone(plan("sm90", "only", "other"), headers, ARCHS)) == [
        "sm75",
        "sm80",
        "sm89",
    ]


def reductions(text):
    path = rocprim_tree("5.7.1") / CONFIGS / REDUCE
    return read_changed(path, text.encode())


@pytest.mark.slow
def test_configs_are_for_their_own_architecture():
    text = text_of(REDUCE)
    place = text.index("target_arch::gfx908)")
    place = text.index("reduce_config<", text.index("{};", place) - 90)
    after = reductions(text[:place] + "reduce_config<64, 99>" + text[text.index("\n{};", place) :])
    found = tuned([reductions(text)], [after])
    assert [family.arch for family in found] == ["gfx908"]
    assert unread(found, [after], ("gfx906", "gfx908", "gfx90a")) == ("gfx906", "gfx90a")


def test_a_plan_for_one_of_amd_s_leaves_all_alone_but_those_that_it_reaches():
    made = Plan.model_construct(
        options=Options.model_construct(arch="gfx942"),
        actions=(),
        reached=(
            Reached.model_construct(arch="gfx1100", kept=False),
            Reached.model_construct(arch="gfx1030", kept=True),
        ),
    )
    archs = ("gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201")
    assert left_alone(made, [], archs) == ("gfx90a", "gfx1030", "gfx1201")
