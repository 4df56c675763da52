import json

import jsonschema
import pytest

from policygen import json_schemas, resources
from policygen.cli.main import main

FOLDER = resources.folder("schemas") / "json"


def test_the_checked_in_schemas_are_those_of_the_models():
    checked_in = {p.name: p.read_text(encoding="utf-8") for p in FOLDER.glob("*.json")}
    assert checked_in == json_schemas.schema_files(), f"run: {json_schemas.REMEDY}"


def test_schemas_are_written_into_a_folder(tmp_path):
    json_schemas.write_schemas(tmp_path / "new")
    assert {p.name for p in (tmp_path / "new").iterdir()} == {p.name for p in FOLDER.iterdir()}


MINI = str(resources.folder("cub_headers") / "mini")


@pytest.mark.parametrize(
    ("schema", "command"),
    [
        ("scan-1", ["scan", "--json", "--cub", MINI]),
        ("bench-1", ["bench", "--json", f"{MINI}/cub/benchmarks/bench"]),
        ("headers-1", ["headers", "list", "--json"]),
    ],
)
def test_what_a_command_prints_fits_its_schema(schema, command, capsys):
    assert main(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == f"policygen/{schema.replace('-', '/')}"
    text = (FOLDER / f"{schema}.schema.json").read_text(encoding="utf-8")
    jsonschema.validate(document, json.loads(text))
