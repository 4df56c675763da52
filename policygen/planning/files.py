"""The headers that a plan changes: what they hold, and what they are to hold."""

import hashlib
from collections.abc import Mapping

from policygen.errors import InputError, PolicygenError, together
from policygen.model.plan import Plan, PlannedFile
from policygen.source.splice import splice


def planned_file(path: str, edits: int, before: bytes, after: bytes) -> PlannedFile:
    """A header with the digests of what it holds and is to hold."""
    return PlannedFile(
        path=path,
        edits=edits,
        before=hashlib.sha256(before).hexdigest(),
        after=hashlib.sha256(after).hexdigest(),
    )


def check_tree(plan: Plan, data: Mapping[str, bytes]) -> None:
    """An error where headers are not those that the plan was made for."""
    errors: list[PolicygenError] = []
    for file in plan.files:
        before = data.get(file.path)
        if before is None:
            words = f"the plan changes {file.path}, which none of its results is for"
            errors.append(InputError(words, "The plan was changed; make it again."))
        elif hashlib.sha256(before).hexdigest() != file.before:
            words = f"{file.path} is not what the plan was made for"
            remedy = "Make the plan again, or name its tree with --cub."
            errors.append(InputError(words, remedy))
    if errors:
        raise together(errors)


def changed_headers(plan: Plan, data: Mapping[str, bytes]) -> dict[str, bytes]:
    """The headers after a plan that was made for them."""
    return {
        file.path: splice(
            file.path, data[file.path], [edit for edit in plan.edits if edit.path == file.path]
        )
        for file in plan.files
    }
