"""Files of tuners that tests write, as they are read or refused."""

import json

import pytest

from policygen.app.db_import import read_tuned
from policygen.errors import PolicygenError


def written(path, made):
    path.write_text(made if isinstance(made, str) else json.dumps(made))
    return path


def read(tmp_path, *made):
    return read_tuned([written(tmp_path / f"{n}.json", one) for n, one in enumerate(made)])


def refused(tmp_path, *made):
    with pytest.raises(PolicygenError) as error:
        read(tmp_path, *made)
    assert len(str(error.value)) < 700
    return str(error.value).replace(f"{tmp_path}/", "")
