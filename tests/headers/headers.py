"""Small headers for tests: real CUB has more, but hides the one construct that a test is about."""

from policygen import rendering
from policygen.headers.scan import read_header

MINI = rendering.folder("cub_headers") / "mini/cub/cub/device/dispatch/tuning"

HEAD = """CUB_NAMESPACE_BEGIN
namespace detail { namespace demo {
template <class T, int Size> struct sm90_tuning;
"""
TAIL = "}}\nCUB_NAMESPACE_END\n"


def wrap(body: str) -> bytes:
    """A body inside the namespaces of a family with two parameters."""
    return f"{HEAD}{body}\n{TAIL}".encode()


def read(body: str):
    """The families of such a header."""
    return read_header("tuning_demo.cuh", wrap(body)).families


def read_entries(body: str):
    """The entries of its one family, without the primary template."""
    (family,) = read(body)
    return family.entries[1:]


def mini():
    """The headers of the miniature tree, by name."""
    files = {path.name: path.read_bytes() for path in sorted(MINI.glob("*.cuh"))}
    neighbours = {f"cub/device/dispatch/tuning/{n}": d for n, d in files.items()}
    return {name: read_header(name, data, neighbours) for name, data in files.items()}
