"""policygen turns GPU tuning results into CUB's tuning policies, with proof."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from policygen.app.apply import AppliedChange as AppliedChange
    from policygen.app.apply import apply_plan as apply_plan
    from policygen.app.apply import finish_applies as finish_applies
    from policygen.app.apply import undo_applies as undo_applies
    from policygen.app.audits import audit_coverage as audit_coverage
    from policygen.app.audits import audit_lint as audit_lint
    from policygen.app.audits import audit_reach as audit_reach
    from policygen.app.benchmarks import new_benchmark as new_benchmark
    from policygen.app.benchmarks import read_tunables as read_tunables
    from policygen.app.calls import list_calls as list_calls
    from policygen.app.databases import compare_databases as compare_databases
    from policygen.app.databases import cover_spaces as cover_spaces
    from policygen.app.databases import describe_databases as describe_databases
    from policygen.app.databases import merge_databases as merge_databases
    from policygen.app.databases import rank_variants as rank_variants
    from policygen.app.databases import report_search as report_search
    from policygen.app.databases import strategy_matrix as strategy_matrix
    from policygen.app.db_import import ImportedAs as ImportedAs
    from policygen.app.db_import import import_results as import_results
    from policygen.app.doctor import examine as examine
    from policygen.app.effect import Planned as Planned
    from policygen.app.effect import verify_effect as verify_effect
    from policygen.app.emit import emit_selectors as emit_selectors
    from policygen.app.filters import Filter as Filter
    from policygen.app.inputs import ResultFiles as ResultFiles
    from policygen.app.inputs import choose_rules as choose_rules
    from policygen.app.measure import measure_variants as measure_variants
    from policygen.app.measured_workloads import Effort as Effort
    from policygen.app.measured_workloads import VariantsWanted as VariantsWanted
    from policygen.app.measured_workloads import compile_variants as compile_variants
    from policygen.app.overlay import check_overlay as check_overlay
    from policygen.app.overlay import make_overlay as make_overlay
    from policygen.app.overlay import prove_overlay as prove_overlay
    from policygen.app.performance import PerformanceEffort as PerformanceEffort
    from policygen.app.performance import compare_performance as compare_performance
    from policygen.app.performance import narrow_plan as narrow_plan
    from policygen.app.performance import verify_performance as verify_performance
    from policygen.app.plan import Options as Options
    from policygen.app.plan import plan_tunings as plan_tunings
    from policygen.app.plan import read_plan as read_plan
    from policygen.app.resolve import compare_trees as compare_trees
    from policygen.app.resolve import resolve_workloads as resolve_workloads
    from policygen.app.review import review_change as review_change
    from policygen.app.sass import verify_sass as verify_sass
    from policygen.app.scan import scan_tunings as scan_tunings
    from policygen.app.search import Replaying as Replaying
    from policygen.app.search import SearchWanted as SearchWanted
    from policygen.app.search import replay_search as replay_search
    from policygen.app.search import search_variants as search_variants
    from policygen.app.session import Session as Session
    from policygen.app.session import open_session as open_session
    from policygen.app.status import tree_status as tree_status
    from policygen.app.tune import TunedHeader as TunedHeader
    from policygen.app.tune import tune_program as tune_program
    from policygen.errors import PolicygenError as PolicygenError
    from policygen.plots import plot_comparison as plot_comparison
    from policygen.plots import plot_workload as plot_workload
    from policygen.report.pages import render_page as render_page
    from policygen.steps import HowFar as HowFar

# Modules load on first use, because the command line imports this package, too.
_EXPORTS = {
    "app.apply": ("AppliedChange", "apply_plan", "finish_applies", "undo_applies"),
    "app.audits": ("audit_coverage", "audit_lint", "audit_reach"),
    "app.benchmarks": ("new_benchmark", "read_tunables"),
    "app.calls": ("list_calls",),
    "app.databases": (
        "compare_databases",
        "cover_spaces",
        "describe_databases",
        "merge_databases",
        "rank_variants",
        "report_search",
        "strategy_matrix",
    ),
    "app.db_import": ("ImportedAs", "import_results"),
    "app.doctor": ("examine",),
    "app.effect": ("Planned", "verify_effect"),
    "app.emit": ("emit_selectors",),
    "app.filters": ("Filter",),
    "app.inputs": ("ResultFiles", "choose_rules"),
    "app.measure": ("measure_variants",),
    "app.measured_workloads": ("Effort", "VariantsWanted", "compile_variants"),
    "app.overlay": ("check_overlay", "make_overlay", "prove_overlay"),
    "app.performance": (
        "PerformanceEffort",
        "compare_performance",
        "narrow_plan",
        "verify_performance",
    ),
    "app.plan": ("Options", "plan_tunings", "read_plan"),
    "app.resolve": ("compare_trees", "resolve_workloads"),
    "app.review": ("review_change",),
    "app.sass": ("verify_sass",),
    "app.scan": ("scan_tunings",),
    "app.search": ("Replaying", "SearchWanted", "replay_search", "search_variants"),
    "app.session": ("Session", "open_session"),
    "app.status": ("tree_status",),
    "app.tune": ("TunedHeader", "tune_program"),
    "errors": ("PolicygenError",),
    "plots": ("plot_comparison", "plot_workload"),
    "report.pages": ("render_page",),
    "steps": ("HowFar",),
}
_MODULE_BY_NAME = {name: module for module, names in _EXPORTS.items() for name in names}
__all__ = list(_MODULE_BY_NAME)


def __getattr__(name: str) -> object:
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_BY_NAME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_BY_NAME})
