from policygen.model.databases import DbImport, ImportedFailure, ImportedFile, ImportedParameter
from policygen.report.database_views import imported
from tests.report.shown import lines as shown

FILE = ImportedFile(
    path="a.json",
    sha256="0" * 64,
    program="Kernel Tuner",
    kernel="add",
    device="NVIDIA H200",
    size="10",
    configurations=20,
    notes=("it is not closed",),
)


def told(*, verbose=False, head=True, **more):
    document = DbImport(
        out="run.db",
        algorithm="own.add",
        gpu="H200",
        arch="sm90",
        ctk="13.0",
        cccl="",
        workload={},
        base="tile_1",
        base_values={"tile": "1"},
        sizes=("10", "20"),
        variants=3,
        rows=6,
        files=(FILE,),
        **{
            "without_samples": 0,
            "joined": 0,
            "warmup": 0,
            "copies": 0,
            "parameters": (),
            "failures": (),
            "other_failures": 0,
            **more,
        },
    )
    return list(shown(imported(document, verbose=verbose, head=head), 80))


def test_what_was_imported_is_told():
    assert told() == [
        "own.add  H200 · sm90 · ctk 13.0",
        "  base is tile_1",
        "  6 rows, 3 variants, 2 sizes",
        "  a.json: it is not closed",
        "written to run.db",
    ]
    assert told(head=False) == ["own.add  H200 · sm90 · ctk 13.0", "  base is tile_1"]
    assert told(verbose=True)[3:7] == [
        "  Elements=10",
        "  Elements=20",
        "  a.json: 20 configurations",
        "  a.json: it is not closed",
    ]


def test_what_is_not_known_is_said():
    lines = told(without_samples=2, joined=1, copies=4)
    assert lines[2] == (
        "  6 rows, 3 variants, 2 sizes, 1 measurement combined with earlier ones, 4 copies of"
        " measurements ignored"
    )
    assert lines[4].startswith("  2 rows without samples: their uncertainty is unknown")


def test_launches_that_warm_up_are_told():
    assert (
        told(warmup=1)[4].strip().startswith("the first launch is treated as warm-up and ignored")
    )
    assert (
        told(warmup=3)[4].strip().startswith("the first 3 launches are treated as warm-up and ign")
    )
    assert told(warmup=3, without_samples=6)[4].strip().startswith("6 rows without samples")


def test_numbers_stand_for_values():
    values = {number: f'"{number}"' for number in range(10)}
    lines = told(parameters=(ImportedParameter(name="tile", numbered=True, values=values),))
    assert lines[1] == "  base is tile_1 (tile=1)"
    assert "".join(lines[4:-1]).startswith('  tile: 0 is "0", 1 is "1"')
    assert "… 2 more (-v lists them)" in "".join(lines)


def test_reasons_that_are_not_listed_are_counted():
    failures = tuple(
        ImportedFailure(kind="error", reason=f"{n}", count=n, variants=("tile_2",))
        for n in range(1, 11)
    )
    lines = told(failures=failures, other_failures=3)
    assert lines[4] == "  1 error: 1, such as tile_2"
    assert lines[-2] == "  and 5 more reasons"
    assert "reason" not in "".join(told(failures=failures, verbose=True))
