"""All configs of a header of rocPRIM, in whichever form."""

import re
from collections.abc import Mapping

from policygen.dialects.configs.expressions import config_templates
from policygen.dialects.configs.pickers import ARCHS, Fields, read_pickers, struct_fields
from policygen.dialects.configs.structs import read_structs
from policygen.model.tuning import Family
from policygen.source.file import SourceFile

_WORTH_READING = re.compile(
    rb"\bROCPRIM_NAMESPACE\b|\bBEGIN_ROCPRIM_NAMESPACE\b|\bnamespace\s+rocprim\b"
)

# What a config is made of; not what it is by default, nor what wraps it.
PARAMS = "_config_params"
_CONFIG = re.compile(r"^(?!default_|wrapped_|wrap_).*(?:_config(?:_v\d+|_impl)?|Config)$")


def holds_configs(data: bytes) -> bool:
    """Whether there can be a config in a header."""
    return _WORTH_READING.search(data) is not None


Aggregates = dict[str, tuple[tuple[str, str], ...]]
"""The parameters of templates, and the fields of structs, each with its type."""


def read_configs(
    source: SourceFile, header: str, beside: Mapping[str, bytes]
) -> tuple[tuple[Family, ...], Aggregates, dict[str, int]]:
    """The configs by name and architecture, what they are made of, and how much of it they need.

    `beside` are headers that declare what configs are.
    """
    headers = [source.text.data, *beside.values()]
    templates = config_templates(headers)
    structs = read_structs(source, header, templates)
    parameters = {
        name: lot
        for name, lot in sorted(templates.items())
        if _CONFIG.search(name) and all(one.name for one in lot)
    }
    fields = struct_fields(headers)
    pickers = read_pickers(source, header, fields)
    made: Aggregates = {n: tuple((p.name, p.type) for p in lot) for n, lot in parameters.items()}
    if pickers:
        made |= _params(fields)
    needed = {n: sum(p.default is None for p in lot) for n, lot in parameters.items()}
    return (*structs, *pickers), made, needed


def _params(fields: Fields) -> Aggregates:
    """The structs that pickers return, with those that they are made of, and what devices are."""
    kept = ((name, lot) for name, lot in sorted(fields.items()) if name.endswith((PARAMS, ARCHS)))
    return {name: lot for name, lot in kept if lot}
