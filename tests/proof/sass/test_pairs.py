import pytest

from policygen.proof.kernel_comparison import pairs, verdict
from tests.proof.sass.dumps import CPP, EMPTY, SUM_FLOAT, SUM_INT, kernels, renamed

SUM = kernels()[SUM_INT]


def changed(*replacements, **fields):
    """The kernel with other instructions."""
    code = "\n".join(SUM.code)
    for old, new in replacements:
        assert old in code
        code = code.replace(old, new)
    return renamed(SUM, code=tuple(code.split("\n")), **fields)


def swapped():
    code = list(SUM.code)
    code[1], code[2] = code[2], code[1]
    return renamed(SUM, code=tuple(code))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (SUM, "equal"),
        (renamed(SUM, name="other"), "renamed"),
        (swapped(), "moved"),
        (changed(("R5", "R9")), "moved"),
        (changed(("P0", "P3")), "moved"),
        (changed(("UR8", "UR18")), "moved"),
        (changed(("ULDC UR8,", "ULDC UR8.reuse,")), "moved"),
        (changed(("@P0 BRA +0xe0", "@P0 BRA +0xf0")), "moved"),
        (changed(("IADD3 R5,", "IADD3.X R5,")), "different"),
        (changed(("0x80", "0x90")), "different"),
        (changed(("@P0 EXIT", "@!P0 EXIT")), "different"),
        (changed(("R2, R5, RZ", "R2, R5, R7")), "different"),
        (renamed(SUM, code=SUM.code[:-1]), "different"),
        (renamed(SUM, resources={**SUM.resources, "REG": 11}), "different"),
        (renamed(SUM, resources={**SUM.resources, "SHARED": 0}), "different"),
        (renamed(SUM, resources={**SUM.resources, "STACK": 8}), "different"),
        (renamed(SUM, max_threads=128), "different"),
        (changed(("R5", "R9"), resources={**SUM.resources, "REG": 11}), "different"),
    ],
)
def test_a_kernel_is_equal_renamed_moved_or_different(after, expected):
    assert verdict(SUM, after) == expected
    assert verdict(after, SUM) == expected


def as_release(number, policy=900):
    """The kernels and C++ names of another release, with another newest policy."""
    found, cpp = [], {}
    for name, kernel in kernels().items():
        new = name.replace("CUB_300001", f"CUB_{number}").replace("Policy900", f"Policy{policy}")
        cpp[new] = (
            CPP[name].replace("CUB_300001", f"CUB_{number}").replace("Policy900", f"Policy{policy}")
        )
        found.append(renamed(kernel, name=new))
    return found, cpp


def names(found):
    return {(p.before and p.before.name, p.after and p.after.name) for p in found}


def test_kernels_are_paired_by_name():
    here = list(kernels().values())
    assert names(pairs(here, here[::-1], CPP)) == {(n, n) for n in kernels()}


def test_kernels_of_another_release_or_policy_are_paired_by_what_remains():
    there, cpp = as_release(300200, 1200)
    found = pairs(list(kernels().values()), there, {**CPP, **cpp})
    assert {verdict(p.before, p.after) for p in found} == {"renamed"}
    assert all(
        p.before.name.replace("300001", "300200").replace("Policy900", "Policy1200") == p.after.name
        for p in found
    )


def test_two_kernels_with_one_lasting_name_are_paired_by_content():
    other = renamed(SUM, name="b", code=("EXIT",))
    same = {SUM.name: "a::Policy1", "b": "a::Policy2", "c": "a::Policy3", "d": "a::Policy4"}
    found = pairs([SUM, other], [renamed(other, name="c"), renamed(SUM, name="d")], same)
    assert names(found) == {(SUM.name, "d"), ("b", "c")}


def test_equal_code_under_any_name_is_a_pair():
    cpp = {**CPP, "new": "void lib::Another<int>(int)"}
    found = pairs([SUM], [renamed(SUM, name="new")], cpp)
    assert [verdict(p.before, p.after) for p in found] == ["renamed"]


def test_a_kernel_with_other_template_arguments_is_the_same_function():
    cpp = {**CPP, "new": "void lib::SumKernel<lib::policy_hub<int, 2>::Policy900, int>(int)"}
    found = pairs([SUM], [renamed(SUM, name="new", code=("EXIT",))], cpp)
    assert names(found) == {(SUM.name, "new")}
    assert verdict(found[0].before, found[0].after) == "different"


def test_what_has_no_counterpart_is_alone():
    here = kernels()
    found = pairs([here[SUM_INT], here[EMPTY]], [here[EMPTY]], CPP)
    assert names(found) == {(SUM_INT, None), (EMPTY, EMPTY)}
    found = pairs([], [here[SUM_FLOAT]], CPP)
    assert names(found) == {(None, SUM_FLOAT)}
