"""All configs of a header of rocPRIM, in whichever form."""

import re
from collections.abc import Mapping

from policygen.dialects.configs.expressions import config_templates
from policygen.dialects.configs.pickers import read_pickers
from policygen.dialects.configs.structs import read_structs
from policygen.model.tuning import Family
from policygen.source.file import SourceFile

_WORTH_READING = re.compile(
    rb"\bROCPRIM_NAMESPACE\b|\bBEGIN_ROCPRIM_NAMESPACE\b|\bnamespace\s+rocprim\b"
)


def holds_configs(data: bytes) -> bool:
    """Whether there can be a config in a header."""
    return _WORTH_READING.search(data) is not None


def read_configs(
    source: SourceFile, header: str, beside: Mapping[str, bytes]
) -> tuple[Family, ...]:
    """The configs by name and architecture; `beside` are headers that declare what they are."""
    headers = [source.text.data, *beside.values()]
    structs = read_structs(source, header, config_templates(headers))
    return (*structs, *read_pickers(source, header, headers))
