"""nvcc, with all of CUB at hand, confirms every value that the readers found without it."""

import re

import pytest

from policygen import trees
from policygen.headers.scan import scan_headers
from tests.real_trees import tree as cub_tree
from tests.tiers import sampled
from tests.toolchain import compile_to_ptx

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

VERSIONS = ["2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0"]
PROBE = "::policygen_probe"


def argument(spelling, parameters):
    """An argument of a partial specialization with something that no other entry names."""
    for parameter in parameters:
        kind, name = parameter.rsplit(" ", 1)
        stand_in = PROBE if kind in {"class", "typename"} else f"static_cast<{kind}>(77)"
        spelling = re.sub(rf"\b{name}\b", stand_in, spelling)
    return spelling


def assertions(family, entry):
    args = ", ".join(argument(arg, entry.template_parameters) for arg in entry.args)
    tuning = f"{family.name}<{args}>"
    for member in entry.members:
        name = f"{tuning}::{member.name}"
        if member.kind == "alias":
            yield f"::cuda::std::is_same<typename {name}, {member.spelling}>::value"
        elif isinstance(member.value, bool):
            yield f"{name} == {str(member.value).lower()}"
        elif member.value is not None:
            yield f"{name} == ({member.value})"


def translation_unit(families, headers):
    yield from (f"#include <cub/device/dispatch/tuning/{header}>" for header in headers)
    yield "#include <cuda/std/type_traits>"
    yield "struct policygen_probe {};"
    yield "CUB_NAMESPACE_BEGIN"
    for family in families:
        yield f"namespace {family.namespace.removeprefix('cub::')} {{"
        for entry in family.specializations:
            place = f"{family.header}:{entry.line}"
            for text in assertions(family, entry):
                yield f'static_assert({text}, "{place}");'
        yield "}"
    yield "CUB_NAMESPACE_END"


@pytest.mark.slow
@pytest.mark.parametrize("version", sampled(VERSIONS, "3.0.1", "3.6.0"))
def test_the_compiler_confirms_every_value(version, tmp_path):
    root = cub_tree(version)
    scanned = scan_headers(trees.tuning_headers(trees.open_tree(root)))
    tuned = [header for header in scanned.headers if header.families]
    families = [family for header in tuned for family in header.families]
    lines = list(translation_unit(families, [header.name for header in tuned]))
    assert sum(line.startswith("static_assert") for line in lines) > 1600
    source = tmp_path / "values.cu"
    source.write_text("\n".join(lines))
    done = compile_to_ptx(source, root)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.slow
def test_a_wrong_value_is_refused(tmp_path):
    """The check above can fail."""
    source = tmp_path / "wrong.cu"
    source.write_text(
        "#include <cub/device/dispatch/tuning/tuning_radix_sort.cuh>\n"
        "CUB_NAMESPACE_BEGIN namespace detail::radix {\n"
        "static_assert(sm90_small_key_tuning<1, 0, 4>::threads == 513);\n"
        "} CUB_NAMESPACE_END\n"
    )
    done = compile_to_ptx(source, cub_tree("3.0.1"))
    assert done.returncode != 0
    assert "static assertion failed" in done.stderr
