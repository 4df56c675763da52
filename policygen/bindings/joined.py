"""Files of one's own that give further benchmarks to an algorithm that CUB's bindings have."""

from pathlib import Path

from policygen.errors import InputError
from policygen.model.bindings import Binding

UNPLAIN = set('<>"\\\n\r')
"""What ends the name of a header, or begins something else."""


def is_joined(binding: Binding) -> bool:
    """Whether a file leaves it to another one where policies are selected."""
    return not (binding.sites or binding.families or binding.selectors or binding.hubs)


def joined(binding: Binding, more: Binding) -> Binding:
    """An algorithm with the benchmarks of another file, how they run, and their types."""
    return binding.model_copy(
        update={
            "benchmarks": (*binding.benchmarks, *more.benchmarks),
            "calls": (*binding.calls, *more.calls),
            "runs": (*binding.runs, *more.runs),
            "types": (*binding.types, *more.types),
        }
    )


def with_headers(binding: Binding, folder: Path) -> Binding:
    """A file of one's own with the whole paths of the headers that lie beside it."""
    return binding.model_copy(
        update={
            "benchmarks": tuple(
                one.model_copy(update={"includes": tuple(_found(n, folder) for n in one.includes)})
                for one in binding.benchmarks
            )
        }
    )


def _found(name: str, folder: Path) -> str:
    path = folder / name
    if not path.is_file():
        return name
    whole = str(path.resolve())
    if UNPLAIN & set(whole):
        raise InputError(f"the path of {path} has other than plain letters", "Move it.")
    return whole
