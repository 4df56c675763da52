"""The JSON Schemas of every document that policygen writes, generated from the models.

`python -m policygen.json_schemas` writes them to `schemas/json/`.
"""

import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from pydantic import BaseModel

from policygen import rendering
from policygen.model.bindings import Binding, LibraryTypes, Types
from policygen.model.own_workload import OwnKernel, OwnWorkload
from policygen.model.records import Document

for module in iter_modules([str(Path(__file__).parent / "model")], "policygen.model."):
    import_module(module.name)
DOCUMENTS: tuple[type[Document], ...] = tuple(Document.__subclasses__())
"""All documents: each is a direct subclass, in a module of `policygen.model`."""
FILES: dict[str, type[BaseModel]] = {
    "binding": Binding,
    "binding-library-types": LibraryTypes,
    "binding-types": Types,
    "kernel": OwnKernel,
    "workload": OwnWorkload,
}
"""Input files; their schemas help editors and authors of bindings."""
REMEDY = "make schemas"
"""The command that regenerates the schemas."""


def schema_files() -> dict[str, str]:
    """File name → text of each schema."""
    documents = {
        _file_name(document): _dump(document.model_json_schema(mode="serialization"))
        for document in DOCUMENTS
    }
    files = {
        f"{name}.schema.json": _dump(kind.model_json_schema(by_alias=True))
        for name, kind in FILES.items()
    }
    return documents | files


def write_schemas(folder: Path) -> None:
    """Writes all schemas into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_files().items():
        (folder / name).write_text(text, encoding="utf-8")


def _file_name(document: type[Document]) -> str:
    # "policygen/scan/1" is described by scan-1.schema.json
    _, name, version = document.model_fields["format"].default.split("/")
    return f"{name}-{version}.schema.json"


def _dump(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_schemas(rendering.folder("schemas") / "json")
