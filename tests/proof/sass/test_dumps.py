import json

import pytest

from policygen.errors import InputError
from policygen.model.workload import point_of
from policygen.proof.kernel_units import INDEX, is_dumps, load, save
from tests.proof.sass.dumps import kernels

POINT = point_of("cub.bench.scan.exclusive.sum", {"T": "I8", "OffsetT": "I32"})
DUMPS = {
    (POINT, "sm90"): tuple(kernels().values()),
    (POINT, "sm75"): tuple(kernels("sm75").values()),
}


@pytest.fixture
def folder(tmp_path):
    save(tmp_path / "kept", DUMPS, "calls", "3.0.1", "nvcc 13.2.86")
    return tmp_path / "kept"


def test_what_is_saved_is_read_back(folder):
    index, found = load(folder)
    assert found == DUMPS
    assert (index.version, index.toolchain, len(index.files)) == ("3.0.1", "nvcc 13.2.86", 2)
    assert is_dumps(folder)
    assert not is_dumps(folder.parent)
    assert sorted(path.name for path in folder.iterdir()) == [
        "cub.bench.scan.exclusive.sum.T_I8.OffsetT_I32.sm75.json",
        "cub.bench.scan.exclusive.sum.T_I8.OffsetT_I32.sm90.json",
        INDEX,
    ]


def no_kernels(path):
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "kernels": []}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "cannot read .*: No such file or directory"),
        (
            lambda path: path.write_bytes(path.read_bytes()[:-9]),
            "is not a dump of this version of policygen",
        ),
        (lambda path: path.write_text(""), "is not a dump of this version of policygen"),
        (no_kernels, "is not a dump of this version of policygen"),
    ],
)
@pytest.mark.parametrize("which", [0, 2])
def test_a_dump_that_is_damaged_is_an_error(folder, damage, message, which):
    path = sorted(folder.iterdir())[which]
    if damage is no_kernels and path.name == INDEX:
        path.write_text(path.read_text().replace("sass-dumps/1", "sass-dumps/9"))
    else:
        damage(path)
    with pytest.raises(InputError, match=message) as caught:
        load(folder)
    assert path.name in str(caught.value)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        save(tmp_path / "file", DUMPS, "calls", "3.0.1", "nvcc 13.2.86")
