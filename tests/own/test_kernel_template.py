"""The start of a kernel's file that `policygen tune --template kernel` prints."""

import pytest

from policygen.app.own_workloads import is_kernel
from policygen.cli.main import main
from policygen.headers.benchmark_sources import read_kernel


@pytest.fixture
def start(tmp_path, capsys):
    assert main(["tune", "--template", "kernel"]) == 0
    path = tmp_path / "mine.toml"
    path.write_text(capsys.readouterr().out)
    (tmp_path / "mine.cu").touch()
    return path


def test_it_is_a_kernels_file_as_it_stands(start):
    assert is_kernel(start)
    maker = read_kernel(start)
    assert maker.names == ("own.mine.small", "own.mine.large")
    assert [one.axes for one in maker.runs()] == [
        {"Elements": ("100000",)},
        {"Elements": ("64000000",)},
    ]
    assert maker.start == {"threads": 256, "items": 1}
