"""The JSON Schemas of every document that policygen writes, generated from the models.

`python -m policygen.json_schemas` writes them to `schemas/json/`.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from policygen import rendering
from policygen.model.audits import BenchCheck, Coverage, LintReport, Reach
from policygen.model.benchmarks import BenchmarkList
from policygen.model.bindings import Binding, LibraryTypes, Types
from policygen.model.databases import DbCompare, DbImport
from policygen.model.emitted import Emitted, TunedProgram
from policygen.model.machine import Doctor, Status, Undo
from policygen.model.machine_code import Dump, DumpIndex, SassCompiles, VerifySass
from policygen.model.measured import MeasureCompile, MeasuredVariants, StrategyMatrix
from policygen.model.overlays import (
    Overlay,
    OverlayCheck,
    OverlayMade,
    OverlayProof,
    ProgramCalls,
)
from policygen.model.own_workload import OwnKernel, OwnWorkload
from policygen.model.plans import Plan
from policygen.model.records import Document
from policygen.model.results import DbCoverage, DbExport, DbInfo, DbPlot, DbTop, MergeReport
from policygen.model.reviews import Review
from policygen.model.searches import Searched, SearchEvent, SearchReplay, SearchReport
from policygen.model.selection import Comparison, Effect, Resolution
from policygen.model.trees import Headers
from policygen.model.tuning import Scan
from policygen.model.verdicts import VerifyPerformance

DOCUMENTS: tuple[type[Document], ...] = (
    BenchCheck,
    BenchmarkList,
    Comparison,
    Coverage,
    DbCompare,
    DbCoverage,
    DbExport,
    DbImport,
    DbInfo,
    DbPlot,
    DbTop,
    Doctor,
    Dump,
    DumpIndex,
    Effect,
    Emitted,
    Headers,
    LintReport,
    StrategyMatrix,
    MeasureCompile,
    MeasuredVariants,
    Searched,
    SearchEvent,
    TunedProgram,
    MergeReport,
    Overlay,
    OverlayCheck,
    OverlayMade,
    OverlayProof,
    Plan,
    ProgramCalls,
    Reach,
    Resolution,
    Review,
    SassCompiles,
    Scan,
    SearchReport,
    SearchReplay,
    Status,
    Undo,
    VerifyPerformance,
    VerifySass,
)
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
        f"{name}.schema.json": _dump(model.model_json_schema(by_alias=True))
        for name, model in FILES.items()
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
