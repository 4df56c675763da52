"""Two databases beside each other: two GPUs, two searches, a search and its repeat."""

from pathlib import Path

from policygen.app.inputs import Inputs, ResultFiles, nothing_matches, open_inputs
from policygen.errors import InputError
from policygen.hints import listed
from policygen.model.db_compare import ComparedWorkload, DbCompare, SideFiles
from policygen.model.results import Rules
from policygen.outputs import write_output
from policygen.report.plot_pairs import pairs_plot
from policygen.report.plots import FORMATS, check_suffix
from policygen.report.views.db_compare import render
from policygen.results.case import Case
from policygen.results.compare import NOT_BOTH, Terms, compare_cases, lone
from policygen.results.decoder import Decoder
from policygen.results.imported import check_alike
from policygen.results.load import expand
from policygen.results.top import Warnings, open_cases

PAGE = ".html"
PICTURES = frozenset({".eps", ".gif", ".jpeg", ".jpg", ".pdf", ".ps", ".webp"})


def compare_databases(a: ResultFiles, b: ResultFiles, rules: Rules | None = None) -> DbCompare:
    """Compares what two sides say of the variants that both have measured."""
    rules = rules or Rules()
    warnings = Warnings()
    pattern, axes = a.where.pattern, a.where.values
    with (
        open_inputs(a) as first,
        open_inputs(b) as second,
        Decoder() as decoder,
        open_cases(first.databases, warnings, pattern, axes) as ones,
        open_cases(second.databases, warnings, b.where.pattern, b.where.values) as others,
    ):
        check_alike(one for case in (*ones, *others) for one in case.databases)
        decoder.start()
        how = Terms(rules, decoder, warnings.add, first.declared, second.declared, axes)
        found = compare_cases(ones, others, how)
        if not found:
            raise _nothing_common((a, b), (ones, others), warnings)
        return DbCompare(
            a=_side(a, ones),
            b=_side(b, others),
            rules=rules,
            workloads=tuple(_named(one, first, second) for one in found),
            only_a=lone(ones, found),
            only_b=lone(others, found),
            warnings=warnings.all,
        )


def is_plot(out: Path) -> bool:
    """Whether a file is to be a plot, or a page with one; another picture is refused."""
    suffix = out.suffix.lower()
    if suffix in PICTURES:
        check_suffix(out)
    return suffix in {*FORMATS, PAGE}


def plot_comparison(document: DbCompare, out: Path, *, force: bool = False) -> None:
    """Plots B's scores over A's, a panel for each workload; .html is a page that tells the rest."""
    if out.suffix.lower() == PAGE:
        write_output(out, render(document).encode("utf-8", "surrogateescape"), force=force)
    else:
        pairs_plot(document, out)


def _side(given: ResultFiles, cases: tuple[Case, ...]) -> SideFiles:
    keys = {tuple(case.key.model_dump().values()): case.key for case in cases}
    files = tuple(map(str, expand(given.files)))
    return SideFiles(databases=files, keys=tuple(keys[one] for one in sorted(keys)))


def _named(one: ComparedWorkload, first: Inputs, second: Inputs) -> ComparedWorkload:
    """With the files that the user gave."""
    return one.model_copy(update={"a": first.named(one.a), "b": second.named(one.b)})


def _nothing_common(
    given: tuple[ResultFiles, ResultFiles],
    sides: tuple[tuple[Case, ...], tuple[Case, ...]],
    warnings: Warnings,
) -> InputError:
    """What there is, where nothing is compared with anything."""
    if not any(sides):
        return nothing_matches(given[0].where, [file for one in given for file in one.files])
    asked = any(one.where.regex or one.where.axes for one in given)
    none = f"nothing with a base{' that matches' if asked else ''}"
    told = [f"{name} has {_names(cases) or none}" for name, cases in zip("AB", sides, strict=True)]
    why = [f"; {one.message}" for one in warnings.all if one.message.endswith(NOT_BOTH)]
    message = f"A and B have nothing in common{''.join(why[:1])}"
    return InputError(message, ".\n  ".join(told))


def _names(cases: tuple[Case, ...]) -> str:
    return listed(
        f"{case.algorithm}[{', '.join(f'{name}={value}' for name, value in case.workload.items())}]"
        for case in cases
    )
