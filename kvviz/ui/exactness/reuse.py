"""The page's main figure: a cache reused with nothing changed, and with one condition broken at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.figures import Drawing
from kvviz.figures.exactness import GapLine, gap_lines
from kvviz.ui.exactness.common import Asked, job_for
from kvviz.ui.exactness.settings import ExactnessSettings
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.runs import WORKER, Key
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain, plural, scientific

if TYPE_CHECKING:
    from kvviz.analysis.exactness.compared import Compared
    from kvviz.analysis.exactness.reuse import Condition

SAME, HALF, HALF_FORMAT = "same", "half", "bfloat16"
ROWS = 16  # read at a time after the prefix, so that the cache is met more than once
EARLY = 4  # the position of the token that is replaced where none is chosen
CONDITIONS = ("prefix", "weights", "positions", "rule", "dtype")
COLOURS = {
    SAME: "a",
    HALF: "g",
    "prefix": "b",
    "weights": "c",
    "positions": "d",
    "rule": "e",
    "dtype": "f",
}


@dataclass(frozen=True, eq=False)
class Reused:
    """One line of the figure."""

    name: str
    words: str  # what was changed
    compared: Compared
    expected: str  # the likeliest token without a cache where the answer first breaks, "" if it never does
    got: str  # the one with it
    allowed: float  # nats: what another order of the same sums may change

    @property
    def nbytes(self) -> int:
        return self.compared.nbytes + 1000


def wanted(view: View) -> list[tuple[Key, Callable[[Job], Result]]]:
    """A job for each line: nothing changed in both formats, and every condition that is switched on."""
    chosen = view.of(ExactnessSettings)
    return [line_job(view, name) for name in (SAME, HALF, *(n for n in CONDITIONS if getattr(chosen, n)))]


def line_job(view: View, name: str) -> tuple[Key, Callable[[Job], Result]]:
    chosen = view.of(ExactnessSettings)
    amounts = {"prefix": chosen.replaced, "weights": chosen.adapter, "positions": chosen.shift, "rule": chosen.window}

    def compute(given: Asked, job: Job) -> Reused:
        return line(given, name, chosen, job)

    return job_for(view, "reuse", "reads on from a cache", compute, name, amounts.get(name))


def line(given: Asked, name: str, chosen: ExactnessSettings, job: Job) -> Reused:
    """Compute one of the lines."""
    from kvviz.analysis.exactness import compared, reuse

    model, ids, prefix, uncached = given.model, given.ids, given.prefix, given.uncached()
    watch = {"is_cancelled": job.is_unwanted}
    if name == HALF:
        found = reuse.in_other_format(model, ids, prefix, HALF_FORMAT, rows=ROWS)
    else:
        condition = condition_of(given, name, chosen)
        rows = ROWS if name == SAME else None
        found = reuse.reused(model, ids, prefix, condition, uncached, rows=rows, **watch)  # type: ignore[arg-type]
    own = compared.stock_gap(model, ids, prefix, uncached) if name == SAME else 0.0
    words = broken_words(name, chosen, replaced_at(given, chosen), reuse.other_format(model.dtype))
    return Reused(name, words, found, *broken_tokens(given, found), compared.allowed_gap(model, own))


def condition_of(given: Asked, name: str, chosen: ExactnessSettings) -> Condition:
    """What is changed under that name; nothing under the first."""
    from kvviz.analysis.exactness import reuse

    if name == SAME:
        return reuse.Condition()
    replaced = replaced_at(given, chosen)
    if name == "prefix" and replaced >= given.prefix:
        raise ValueError(
            f"There is no token {replaced} in the prefix to replace: it has the positions 0–{given.prefix - 1}."
        )
    replaced = min(replaced, given.prefix - 1)
    return reuse.conditions(
        replaced=(replaced, reuse.other_token(given.ids.tolist(), replaced)),
        adapter=chosen.adapter / 100,
        shift=chosen.shift,
        window=chosen.window,
        number_format=reuse.other_format(given.model.dtype),
    )[name]


def replaced_at(given: Asked, chosen: ExactnessSettings) -> int:
    """The position that is chosen, else an early one."""
    return min(EARLY, given.prefix - 1) if chosen.replaced is None else chosen.replaced


def broken_tokens(given: Asked, found: Compared) -> tuple[str, str]:
    """What would have been written without and with the cache where they first differ."""
    from kvviz.models.tokens import labels

    if found.broken_row is None:
        return "", ""
    pair = [int(found.uncached[found.broken_row]), int(found.likeliest[found.broken_row])]
    expected, got = labels(given.loaded.tokenizer, pair)
    return expected, got


def broken_words(name: str, chosen: ExactnessSettings, replaced: int, other_format: str) -> str:
    """What differs between the run that filled the cache and the one that reuses it."""
    return {
        SAME: "nothing changed",
        HALF: f"nothing changed, all of it in {HALF_FORMAT}",
        "prefix": f"another token at position {replaced}",
        "weights": f"other weights: attention changed by {chosen.adapter} %",
        "positions": f"positions shifted by {chosen.shift}",
        "rule": f"another rule: prefix read with a window of {chosen.window}",
        "dtype": f"another number format: prefix read in {other_format}",
    }[name]


def there(jobs: Sequence[tuple[Key, Callable[[Job], Result]]]) -> list[Reused]:
    """The lines computed so far."""
    found = [WORKER.result(key) for key, _ in jobs]
    return [one.value for one in found if one is not None]


def figure(lines: Sequence[Reused], count_from: int) -> Drawing:
    """One line for each, and what rounding alone may change."""
    given = [
        GapLine(one.words, COLOURS[one.name], one.compared.gaps, one.compared.broken_row)  # type: ignore[arg-type]
        for one in lines
    ]
    first = lines[0].compared.first + count_from
    return drawn(gap_lines, given, first, max(one.allowed for one in lines), title="")


def headline(lines: Sequence[Reused], count_from: int) -> str:
    """How exact reuse is, and which of the broken conditions changes the answer first."""
    same = next((one for one in lines if one.name == SAME), None)
    if same is None:
        return "Reading the text with and without a cache."
    exact = f"Cached and uncached answers differ by at most {scientific(same.compared.gap)} nats"
    if same.compared.gap > same.allowed:
        return f"{exact}, more than the {scientific(same.allowed)} that rounding explains."
    broken = [one for one in lines if one.name in CONDITIONS and one.compared.first_token is not None]
    if not broken:
        silent = [one for one in lines if one.name in CONDITIONS]
        more = f"; of {plural(len(silent), 'broken condition')} none changes the likeliest token" if silent else ""
        return f"{exact}{more}."
    first = min(broken, key=lambda one: one.compared.first_token or 0)
    token = (first.compared.first_token or 0) + count_from
    return (
        f"{exact}; with {first.words} the answer changes at token {token}, ‘{first.got}’ instead of ‘{first.expected}’."
    )


def table(lines: Sequence[Reused], count_from: int) -> str:
    """A row a line, for Markdown."""
    header = (
        "| between filling the cache and reusing it | answer first changes at | largest gap (nats) "
        "| same likeliest token |\n"
        "|---|---|--:|--:|\n"
    )
    return header + "\n".join(row(one, count_from) for one in lines)


def row(one: Reused, count_from: int) -> str:
    found = one.compared
    where = "never"
    if found.first_token is not None:
        where = f"token {found.first_token + count_from}: ‘{one.got}’ instead of ‘{one.expected}’"
    return f"| {plain(one.words)} | {plain(where)} | {scientific(found.gap)} | {found.agreement:.1%} |"


def explained(lines: Sequence[Reused]) -> str:
    """What is compared, and which gap is only rounding."""
    one, rows = lines[0], len(lines[0].compared.gaps)
    return (
        f"The cache is made of the first {plural(one.compared.first, 'token')} and reused for the next {rows}; each is "
        "compared with the stock model reading the whole text at once without a cache. Gaps up to "
        f"{scientific(one.allowed)} nats are another order of the same sums (2·10⁻⁴, or twice what the stock model's "
        "own two ways differ by)."
    )
