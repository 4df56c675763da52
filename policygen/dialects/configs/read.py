"""All configs of a header of rocPRIM, in whichever form."""

import re
from collections.abc import Mapping

from policygen.dialects.configs.expressions import config_templates
from policygen.dialects.configs.pickers import read_pickers
from policygen.dialects.configs.structs import read_structs
from policygen.model.tuning import Family, TemplateParameter
from policygen.source.file import SourceFile

_WORTH_READING = re.compile(
    rb"\bROCPRIM_NAMESPACE\b|\bBEGIN_ROCPRIM_NAMESPACE\b|\bnamespace\s+rocprim\b"
)

# What a config is made of; not what it is by default, nor what wraps it.
_CONFIG = re.compile(r"^(?!default_|wrapped_|wrap_).*(?:_config(?:_v\d+)?|Config)$")


def holds_configs(data: bytes) -> bool:
    """Whether there can be a config in a header."""
    return _WORTH_READING.search(data) is not None


Parameters = dict[str, tuple[TemplateParameter, ...]]
"""The parameters of templates."""


def read_configs(
    source: SourceFile, header: str, beside: Mapping[str, bytes]
) -> tuple[tuple[Family, ...], Parameters]:
    """The configs by name and architecture, and the parameters of all templates of configs.

    `beside` are headers that declare what configs are.
    """
    headers = [source.text.data, *beside.values()]
    templates = config_templates(headers)
    structs = read_structs(source, header, templates)
    parameters = {
        name: tuple(lot)
        for name, lot in sorted(templates.items())
        if _CONFIG.search(name) and all(one.name for one in lot)
    }
    return (*structs, *read_pickers(source, header, headers)), parameters
