"""Shortens the names of kernels: without what a release or a policy changes, and for people."""

import re
from collections.abc import Iterable

from policygen.errors import MissingToolError
from policygen.process import run

REMEDY = "Install it: apt-get install binutils"
# CUB_300001_SM_900::, _V_300200_SM_800::, THRUST_300001_SM_900_NS::, std::__4::
_VERSIONED = re.compile(r"\b(?:(?:CUB|THRUST|_V|_CUDA_\w+?)_\d+_\w*?SM_\w+|__\d+)::")
# policy_hub<int, int>::Policy1000
_POLICY = re.compile(r"(?<=::)Policy\d+\b")
# cub::detail::scan::, ::cuda::std::
_SCOPE = re.compile(r"(?:\b\w+::|\(anonymous namespace\)::)+(?=\w)")
LENGTH = 100
"""Of a name that people read."""


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Finds the C++ names of kernels."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    told = run(["c++filt"], install=REMEDY, given="\n".join(wanted)).splitlines()
    if len(told) != len(wanted):
        raise MissingToolError("a working c++filt", REMEDY)
    return dict(zip(wanted, told, strict=True))


def lasting(name: str) -> str:
    """Leaves out of a name its release, architecture list and numbers of policies."""
    return _POLICY.sub("Policy", _VERSIONED.sub("", name))


def function(name: str) -> str:
    """Finds `DeviceScanKernel` in a lasting name."""
    return _split(name)[0].rpartition("::")[2]


def short(name: str) -> str:
    """Gives `DeviceScanKernel<policy_hub<int, int>::Policy1000, int*>`, as long as it fits."""
    head, args = _split(_VERSIONED.sub("", name))
    text, plain = head.rpartition("::")[2], [_plain(arg) for arg in args]
    for count in range(len(plain), 0, -1):
        kept = plain if count == len(plain) else [*plain[:count], "…"]
        whole = f"{text}<{', '.join(kept)}>"
        if len(whole) <= LENGTH:
            return whole
    return f"{text}<{_policy(args[0])}, …>" if args else text


def _policy(arg: str) -> str:
    """`policy_hub<…>::Policy1000`, of an argument that is too long."""
    head, _, rest = arg.partition("<")
    return f"{_plain(head)}<…>{'::' + rest.rpartition('>::')[2] if '>::' in rest else ''}"


def _plain(text: str) -> str:
    """Without the namespaces; `Outer<int>::Inner` stays whole."""
    return _SCOPE.sub("", text).replace("> >", ">>")


def _split(name: str) -> tuple[str, list[str]]:
    """`void scope::kernel<A, B>(C, D)` → its scope and name, and its template arguments."""
    start = name.find("<")
    if start < 0:
        return name.partition("(")[0].removeprefix("void "), []
    args, depth, begin = [], 0, start + 1
    for index in range(start, len(name)):
        char = name[index]
        if char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
            if depth == 0:
                args.append(name[begin:index].strip())
                break
        elif char == "," and depth == 1:
            args.append(name[begin:index].strip())
            begin = index + 1
    return name[:start].removeprefix("void "), args
