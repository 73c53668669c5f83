"""Results as files: each part of ``make bench`` writes one, and README's table is made from them and nothing else.

A part that cannot run writes why, so that no old number is left standing.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import exp
from pathlib import Path
from typing import Any

import torch

import kvviz

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "results"
README = ROOT / "README.md"
MARKS = ("<!-- benchmarks: made by `make bench`, do not edit -->", "<!-- end of benchmarks -->")
METHOD_MARKS = ("<!-- methods: made by `make bench`, do not edit -->", "<!-- end of methods -->")
METHOD_HEAD = "| setup | loss after the prompt (nats) | perplexity | cache at the end | replay, by a plain forward |\n"
METHODS = "methods"
LIBRARIES = ("torch", "transformers", "numpy")


@dataclass(frozen=True)
class Figure:
    """One measured number beside the one to reach; ``low`` and ``high`` are the range over the rounds."""

    name: str
    value: float
    unit: str = "×"
    wanted: str = ""  # such as "≤ 0.8"; empty where nothing was asked
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        spread = "" if self.low is None else f" ({shown(self.low)}–{shown(self.high or 0)})"
        asked = f"   wanted {self.wanted}" if self.wanted else ""
        return f"{self.name}: {shown(self.value)}{spread} {self.unit}{asked}"

    @property
    def is_met(self) -> bool | None:
        """Whether the number asked for was reached; None where none was."""
        found = re.fullmatch(r"([≤≥<>]) ([\d.e+-]+)", self.wanted)
        if not found:
            return None
        sign, limit = found[1], float(found[2])
        return self.value <= limit if sign in "≤<" else self.value >= limit


@dataclass(frozen=True)
class Row:
    """One method of README's table of methods."""

    setup: str
    remark: str
    loss: float  # nats a token after the prompt
    cache_bytes: int
    by_forward: float  # time of the replay by one plain forward

    def __str__(self) -> str:
        remark = f" ({self.remark})" if self.remark else ""
        held = f"{self.cache_bytes / 2**20:.2f} MiB"
        return f"| `{self.setup}`{remark} | {self.loss:.3f} | {exp(self.loss):.1f} | {held} | {self.by_forward:.1f}× |"


def shown(value: float) -> str:
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.3g}"


def ratio_figure(name: str, above: Sequence[float], below: Sequence[float], wanted: str = "") -> Figure:
    """Median and range of the rounds' ratios."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return Figure(name, statistics.median(ratios), "×", wanted, min(ratios), max(ratios))


def ratio_of_medians(name: str, above: Sequence[float], below: Sequence[float], wanted: str = "") -> Figure:
    """Median by median, for steps too short to be paired; the range is that of the quartiles above."""
    base = statistics.median(below)
    low, value, high = (quartile / base for quartile in statistics.quantiles(above, n=4))
    return Figure(name, value, "×", wanted, low, high)


def write(part: str, found: Iterable[Figure | Row], cannot: str = "") -> None:
    """Write one part's file, with the machine and the versions it was measured on."""
    FOLDER.mkdir(exist_ok=True)
    kind = "rows" if part == METHODS else "figures"
    content = {"part": part, "cannot_run": cannot, **surroundings(), kind: [asdict(one) for one in found]}
    (FOLDER / f"{part}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def surroundings() -> dict[str, Any]:
    """Where and with what the numbers were measured; no name of a machine or its owner."""
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": {"kvviz": kvviz.__version__, **{name: importlib.metadata.version(name) for name in LIBRARIES}},
    }


def processor() -> str:
    """What the system calls its processor."""
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text("utf-8"))
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def read_all() -> list[dict[str, Any]]:
    """Every part's file, by name."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))]


def methods_table(parts: Sequence[dict[str, Any]]) -> str:
    """README's table of methods, and where it was measured; the reason where it could not be."""
    part = next((part for part in parts if part["part"] == METHODS), None)
    if part is None or part["cannot_run"]:
        return f"Not measured: {part['cannot_run'] if part else 'it was not run'}."
    lines = [str(Row(**row)) for row in part["rows"]]
    return METHOD_HEAD + "\n".join(["|---|---|---|---|---|", *lines, "", f"Measured on {place_words(part)}."])


def table(parts: Sequence[dict[str, Any]]) -> str:
    """README's table, one row a figure, and the surroundings of each part below."""
    parts = [part for part in parts if part["part"] != METHODS]
    lines = ["| part | measured | value | wanted |", "|---|---|--:|--:|"]
    for part in parts:
        if part["cannot_run"]:
            lines.append(f"| {part['part']} | could not run: {part['cannot_run']} | – | – |")
        lines += [row(part["part"], Figure(**figure)) for figure in part["figures"]]
    places = dict.fromkeys(place_words(part) for part in parts)
    return "\n".join([*lines, "", *(f"Measured on {place}." for place in places)])


def row(part: str, figure: Figure) -> str:
    spread = "" if figure.low is None else f" ({shown(figure.low)}–{shown(figure.high or 0)})"
    missed = " **missed**" if figure.is_met is False else ""
    return f"| {part} | {figure.name} | {shown(figure.value)} {figure.unit}{spread} | {figure.wanted}{missed} |"


def place_words(part: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in part["versions"].items())
    return f"{part['processor']}, {part['threads']} threads, {part['date']}; {versions}"


def rewrite_readme() -> None:
    """Put both tables between their marks."""
    text, parts = README.read_text("utf-8"), read_all()
    for marks, lines in ((METHOD_MARKS, methods_table(parts)), (MARKS, table(parts))):
        text = between(text, marks, lines)
    README.write_text(text, "utf-8")


def between(text: str, marks: tuple[str, str], lines: str) -> str:
    """The text with what stands between its marks replaced; ValueError if it has no such marks."""
    before, _, rest = text.partition(marks[0])
    _, _, after = rest.partition(marks[1])
    if not rest or not after:
        raise ValueError(f"README.md has no place for the table: it needs the lines {marks[0]} and {marks[1]}.")
    return f"{before}{marks[0]}\n{lines}\n{marks[1]}{after}"
