"""Where files of a library were measured, together: one GPU, of one architecture."""

from collections.abc import Sequence

from policygen.errors import InputError, PolicygenError, together
from policygen.model.arch import arch_and_gpu
from policygen.results.tuners.gathered import check_size, gpu_name
from policygen.results.tuners.tuned import TunedFile
from policygen.results.tuners.tuner_json import quoted


def suite_arch(files: Sequence[TunedFile], given: str) -> str:
    """The architecture that files say, or that is said where they say none, or not which GPU."""
    known = [one for one in files if one.arch is not None]
    for one in known:
        if one.arch != known[0].arch:
            raise InputError(
                f"{one.path}: was measured on {one.arch}, and {known[0].path} on {known[0].arch}",
                "Import each architecture into a database of its own.",
            )
    if not known and not given:
        raise InputError(
            f"{files[0].path}: does not say of which architecture the GPU is",
            "Say it: --arch gfx942",
        )
    if known and given and known[0].arch not in {given, arch_and_gpu(given)[0]}:
        raise InputError(
            f"{known[0].path}: was measured on {known[0].arch}, and --arch says {given}",
            "Leave --arch out where files say it.",
        )
    return given or str(known[0].arch)


def suite_gpu(files: Sequence[TunedFile], given: str, arch: str) -> str:
    """The GPU as it is said, or as files name it; where none does, its architecture."""
    named = [one for one in files if one.device is not None]
    # What says more of itself comes first: `MI300X (8192, 304, eccon)` may be a `MI300X`.
    named.sort(key=lambda one: "(" not in (one.device or ""))
    for one in named:
        if one.device not in {named[0].device, _plain(named[0].device)}:
            raise InputError(
                f"{one.path}: was measured on {quoted(one.device or '')}, and {named[0].path} on"
                f" {quoted(named[0].device or '')}",
                "Import each GPU into a database of its own; `policygen db compare` compares them.",
            )
    if given:
        return gpu_name(given)
    for one in files if named else ():
        if one.device != named[0].device:
            what = (
                "does not say on which GPU it was measured"
                if one.device is None
                else f"was measured on {quoted(one.device)}"
            )
            raise InputError(
                f"{one.path}: {what}, and {named[0].path} names {quoted(named[0].device or '')}",
                f"If it was the same one, say so: --gpu '{named[0].device}'",
            )
    return (named[0].device or "").removeprefix("AMD ") if named else arch


def _plain(device: str | None) -> str:
    """A GPU without what is known of it: `AMD Instinct MI300X`."""
    return (device or "").partition(" (")[0]


def suite_sizes(files: Sequence[TunedFile], given: str) -> None:
    """Checks that all files have a size."""
    errors: list[PolicygenError] = []
    for path, one in {one.path: one for one in files if not one.size}.items():
        try:
            check_size(path, one.size, given)
        except InputError as error:
            errors.append(error)
    if errors:
        raise together(errors)
