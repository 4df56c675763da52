"""When a variant is worth writing."""

from pydantic import ValidationError

from policygen.config import configured
from policygen.errors import InputError
from policygen.model.labels import parse_label
from policygen.model.results import Rules

__all__ = ["Rules", "choose_rules"]
_OPTIONS = {"worst_allowed": "worst"}
_RATIOS = {"worst_allowed", "confidence", "least_score"}


def choose_rules(current: str | None = None, **wanted: float | bool | None) -> Rules:
    """`[choose]` of `policygen.toml`, changed by what is wanted."""
    found = configured()
    rules = found.settings.choose if found else Rules()
    given = {name: value for name, value in wanted.items() if value is not None}
    try:
        rules = Rules.model_validate({**rules.model_dump(), **given})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        value = first["input"]
        share = isinstance(value, float) and value >= 10 and name in _RATIOS
        raise InputError(
            f"--{_OPTIONS.get(name, name.replace('_', '-'))} {value}: {first['msg']}",
            f"It is a ratio, not per cent: {value / 100:g}." if share else None,
        ) from error
    if rules.prefer_simple and current is None:
        raise InputError("--prefer-simple needs --current", "Give the label of the present values.")
    if current is not None and parse_label(current) is None:
        raise InputError(f"--current {current!r} is no variant label", "Such as: ipt_19.tpb_512")
    return rules
