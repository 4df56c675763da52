"""How noisy base was, on which machine it was measured, and what took how long."""

from collections.abc import Iterable, Iterator

from policygen.model.measured import PointNoise
from policygen.model.search_report import ReportedSession, ReportedWorkload, SearchReport
from policygen.report.blocks import Block, Column, Heading, Inline, Note, Styled, Table
from policygen.report.console import plural
from policygen.report.views import db_words, search_words


def noise(one: ReportedWorkload) -> Iterator[Block]:
    """Show how far base is from itself."""
    yield Heading("Noise", 3)
    if one.score_noise is not None:
        far = search_words.percent(one.score_noise)
        yield Note(
            f"The score of base against itself differs by {far} from process to process (one"
            " standard deviation)."
        )
    if one.choice is not None and one.choice.noise is not None:
        origin = f", {one.choice.noise_origin}" if one.choice.noise_origin else ""
        far = search_words.percent(one.choice.noise)
        yield Note(f"db choose takes {far} for a score in one run{origin}.")
    if one.noise:
        columns = [
            Column("runtime workload"),
            *(Column(t, "n") for t in ("base", "between processes", "beside itself")),
        ]
        yield Table(columns, [_noise_row(row) for row in one.noise], label="Noise", shown=20)
    elif one.score_noise is None:
        yield Note("Base was not measured against itself: how noisy it is stands nowhere.", "soft")


def _noise_row(row: PointNoise) -> list[Inline | Styled]:
    between = "not known" if row.between is None else f"{search_words.percent(row.between)}"
    return [
        search_words.point(row.subbench, row.point),
        search_words.time(row.seconds),
        between,
        f"{search_words.percent(row.beside)}",
    ]


def machine(document: SearchReport) -> Iterator[Block]:
    """Show the sessions, and their steps."""
    yield Heading("Machine")
    if not document.sessions:
        yield Note(
            "The database says no more of the machine than the GPU's name and the versions above:"
            " policygen did not measure it."
        )
        return
    columns = [
        Column("began"),
        Column("took", "n"),
        *(Column(title) for title in ("on", "card", "clocks", "method", "samples")),
    ]
    rows = [_session(one) for one in document.sessions]
    yield Table(columns, rows, "sessions", "Sessions", 20)
    if document.other_sessions:
        yield Note(f"and {plural(document.other_sessions, 'earlier session')}", "soft")
    steps = list(_steps(document.sessions))
    if steps:
        columns = [Column("session"), Column("step"), Column("times", "n"), Column("took", "n")]
        yield Table(columns, steps, "steps", "What took how long", 20)


def _session(one: ReportedSession) -> list[Inline | Styled]:
    clocks = [
        f"{one.sm_clock:,} MHz" if one.sm_clock else "",
        f"memory {one.memory_clock:,} MHz" if one.memory_clock else "",
        f"{one.power_limit:.0f} W" if one.power_limit else "",
    ]
    samples = [
        f"{one.repeated:,} taken again" if one.repeated else "",
        f"{one.throttled:,} while slowed down" if one.throttled else "",
        f"{plural(one.restarts, 'process', 'processes')} started again" if one.restarts else "",
    ]
    method = ", ".join(filter(None, [one.method, "" if one.seed is None else f"seed {one.seed}"]))
    return [
        one.started[:19].replace("T", " "),
        _took(one),
        search_words.machine(one),
        Styled(one.card, "mono"),
        ", ".join(filter(None, clocks)),
        f"{method}, policygen {one.policygen}" if one.policygen else method,
        ", ".join(filter(None, samples)) or "all fine",
    ]


def _took(one: ReportedSession) -> str:
    if one.ended is None:
        return "not ended"
    return "not known" if one.seconds is None else db_words.duration(one.seconds)


def _steps(sessions: Iterable[ReportedSession]) -> Iterator[list[Inline | Styled]]:
    for place, one in enumerate(sessions, 1):
        for step in (*one.steps, *([one.other_steps] if one.other_steps else [])):
            yield [f"{place}", step.step, f"{step.count:,}", db_words.duration(step.seconds)]
