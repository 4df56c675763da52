import json

import jsonschema
import pytest

from policygen import json_schemas, rendering
from policygen.cli.main import main
from policygen.demo.database import demo_database
from policygen.model.audits import Scan
from policygen.model.benchmarks import BenchmarkList
from policygen.model.machine import Status
from policygen.model.results import DbCoverage, DbInfo, DbTop, MergeReport
from policygen.model.searches import SearchReplay
from policygen.model.trees import Headers

FOLDER = rendering.folder("schemas") / "json"


def test_the_checked_in_schemas_are_those_of_the_models():
    checked_in = {p.name: p.read_text(encoding="utf-8") for p in FOLDER.glob("*.json")}
    assert checked_in == json_schemas.schema_files(), f"run: {json_schemas.REMEDY}"


def test_schemas_are_written_into_a_folder(tmp_path):
    json_schemas.write_schemas(tmp_path / "new")
    assert {p.name for p in (tmp_path / "new").iterdir()} == {p.name for p in FOLDER.iterdir()}


MINI = str(rendering.folder("cub_headers") / "mini")


DEMO = "demo.db"


@pytest.mark.parametrize(
    ("model", "command"),
    [
        (Scan, ["scan", "--cub", MINI]),
        (BenchmarkList, ["bench", f"{MINI}/cub/benchmarks/bench"]),
        (Headers, ["headers", "list"]),
        (Status, ["status", "--cub", MINI]),
        (DbTop, ["db", "top", DEMO]),
        (DbTop, ["db", "choose", DEMO]),
        (DbInfo, ["db", "info", DEMO]),
        (DbCoverage, ["db", "coverage", DEMO]),
        (SearchReplay, ["search", "--replay", DEMO, "--seeds", "2"]),
        (MergeReport, ["db", "merge", DEMO, "-o", "out.db"]),
    ],
)
def test_what_was_saved_can_be_read_again(model, command, capsys, tmp_path, monkeypatch):
    """Reports are rendered from saved documents."""
    monkeypatch.chdir(tmp_path)
    demo_database(tmp_path / DEMO)
    assert main([*command, "--json"]) == 0
    text = capsys.readouterr().out
    again = model.model_validate_json(text)
    assert again.to_json() + "\n" == text
    name = again.format.removeprefix("policygen/").replace("/", "-")
    schema = (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
    jsonschema.validate(json.loads(text), json.loads(schema))
