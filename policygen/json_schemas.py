"""The JSON Schemas of every document that policygen writes, generated from the models.

`python -m policygen.json_schemas` writes them to `schemas/json/`.
"""

import json
from pathlib import Path

from policygen import resources
from policygen.model.base import Document
from policygen.model.bench import BenchmarkList
from policygen.model.headers import Headers
from policygen.model.results import DbCoverage, DbInfo, DbTop, MergeReport
from policygen.model.tuning import Scan

DOCUMENTS: tuple[type[Document], ...] = (
    BenchmarkList,
    DbCoverage,
    DbInfo,
    DbTop,
    Headers,
    MergeReport,
    Scan,
)
REMEDY = "make schemas"
"""What writes them anew."""


def schema_files() -> dict[str, str]:
    """File name → text of each schema."""
    return {_file_name(document): _text(document) for document in DOCUMENTS}


def write_schemas(folder: Path) -> None:
    """Writes all schemas into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_files().items():
        (folder / name).write_text(text, encoding="utf-8")


def _file_name(document: type[Document]) -> str:
    # "policygen/scan/1" is described by scan-1.schema.json.
    _, name, version = document.model_fields["format"].default.split("/")
    return f"{name}-{version}.schema.json"


def _text(document: type[Document]) -> str:
    schema = document.model_json_schema(mode="serialization")
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_schemas(resources.folder("schemas") / "json")
