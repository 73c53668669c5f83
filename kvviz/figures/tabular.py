"""A figure's numbers as CSV."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray


def csv_of(
    matrix: NDArray[np.floating] | NDArray[np.integer], row_labels: Sequence[str], column_labels: Sequence[str]
) -> str:
    """The (rows, columns) matrix as CSV text with a header line and a first column of labels.

    Numbers are written with as many digits as bring the same number back, NaN (not there) is an empty cell. Labels
    are written as they are, quoted where CSV needs it; start them with a number, as distinct labels do, and no
    spreadsheet takes one for a formula.
    """
    if matrix.shape != (len(row_labels), len(column_labels)):
        raise ValueError(f"{matrix.shape} does not fit {len(row_labels)} row and {len(column_labels)} column labels.")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["", *column_labels])
    for label, row in zip(row_labels, matrix, strict=True):
        writer.writerow([label, *("" if value != value else str(value) for value in row)])
    return text.getvalue()


def figure_csv(fig: go.Figure) -> str:
    """The numbers of a figure as it shows them: a map as its cells, lines and bars as columns over what they share."""
    traces: list[Any] = [trace for trace in fig.data if has_numbers(trace)]
    rings = [trace for trace in traces if trace.type == "pie"]
    if rings:
        slots = [html.unescape(str(text)).replace("<br>", " ") for text in rings[0].hovertext]
        return csv_of(np.asarray(rings[0].values)[:, None], slots, ["slots"])
    maps = [trace for trace in traces if trace.type == "heatmap"]
    if maps:
        cells = np.asarray(maps[0].z)
        rows, columns = (axis_labels(maps[0][axis], size) for axis, size in zip("yx", cells.shape, strict=True))
        return csv_of(cells, rows, columns)
    values = [values_of(trace) for trace in traces]
    names = [
        html.unescape((trace.name or f"value {place + 1}").replace("<br>", " ")) for place, trace in enumerate(traces)
    ]
    longest = max(traces, key=lambda trace: len(places_of(trace)))
    places = axis_labels(places_of(longest), len(places_of(longest)))
    table = np.full((len(places), len(values)), np.nan)
    for column, one in enumerate(values):
        table[: len(one), column] = one
    return csv_of(table, places, names)


def has_numbers(trace: Any) -> bool:
    """Whether a trace carries data; legends and colour bars have traces without."""
    if trace.type in ("heatmap", "pie"):
        return True
    return trace.y is not None and any(value is not None for value in trace.y)


def places_of(trace: Any) -> Any:
    return trace.y if trace.orientation == "h" else trace.x


def values_of(trace: Any) -> NDArray[np.floating]:
    return np.asarray(trace.x if trace.orientation == "h" else trace.y, dtype=np.float64)


def axis_labels(labels: Any, size: int) -> list[str]:
    """What stands along an axis, as plain text; places are numbered where nothing does."""
    return [str(place) for place in range(size)] if labels is None else [html.unescape(str(label)) for label in labels]
