"""Writes the translation units that instantiate an algorithm for one workload."""

import re

from policygen.model.bindings import BenchmarkBinding, Site
from policygen.proof.unit import Workload, axis_declaration, axis_headers
from policygen.rendering import fill

TEMPLATE = "sass/call.cu.j2"


def render(site: Site, workload: Workload, version: str) -> str:
    """The unit that calls the device API for a workload."""
    call = workload.call
    assert isinstance(call, BenchmarkBinding)
    # An axis that nothing mentions would make two units of the same one.
    written = " ".join((*call.roles.values(), *call.constants.values(), call.algorithm_call or ""))
    mentioned = set(re.findall(r"\baxis::(\w+)", written)) & call.axes.keys()
    axes = [axis_declaration(a, t, version) for a, t in workload.values.items() if a in mentioned]
    return fill(
        TEMPLATE,
        {
            **_headers(site, workload, version),
            "axes": axes,
            "roles": call.roles,
            "constants": call.constants,
            "call": call.algorithm_call,
        },
        trim=False,
    )


def render_headers(site: Site, workload: Workload, version: str) -> str:
    """The same unit without the call: what both sides' headers make of it decides alone."""
    nothing: dict[str, object] = {"axes": [], "roles": {}, "constants": {}, "call": None}
    return fill(TEMPLATE, {**_headers(site, workload, version), **nothing}, trim=False)


def _headers(site: Site, workload: Workload, version: str) -> dict[str, object]:
    call = workload.call
    assert isinstance(call, BenchmarkBinding)
    first = [call.call_header] if call.call_header else []
    others = {*site.includes, *axis_headers(workload, version)}
    return {"includes": [*first, *sorted(others)], "namespaces": site.namespace.split("::")}
