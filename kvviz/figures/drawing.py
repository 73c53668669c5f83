"""What a figure function returns: the figure, the numbers behind it as a table, and the sentence that stands for it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

Column = Sequence[Any] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """Columns under their names; no array is copied, and the rows are written only when somebody asks for them.

    Each of ``columns`` holds R values, or is an array (R, C) that stands for C columns. Text is written as it is,
    quoted where CSV needs it: labels start with a number, as distinct labels do, so that no spreadsheet takes one for
    a formula.
    """

    header: Sequence[str]
    columns: Sequence[Column]

    def __post_init__(self) -> None:
        width, heights = sum(map(width_of, self.columns)), {len(column) for column in self.columns}
        if width != len(self.header) or len(heights) > 1:
            raise ValueError(f"{len(self.header)} names do not fit {width} columns of {sorted(heights)} rows.")

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the table keeps alive."""
        return sum(column.nbytes for column in self.columns if isinstance(column, np.ndarray))

    @property
    def height(self) -> int:
        """How many rows there are."""
        return max(map(len, self.columns), default=0)

    def rows(self) -> Iterator[list[str]]:
        for parts in zip(*self.columns, strict=True):
            yield [cell for part in parts for cell in cells(part)]

    def csv(self) -> str:
        """The table as CSV text, a header line first.

        Numbers are written with as many digits as bring the same number back; NaN (not there) is an empty cell, yes
        and no are 1 and 0.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows())
        return text.getvalue()

    def file(self) -> bytes:
        """The same as a file: UTF-8, begun by the mark without which a spreadsheet takes it for another encoding."""
        return self.csv().encode("utf-8-sig")

    def head(self, rows: int, columns: int) -> list[list[str]]:
        """The header line and the first ``rows``, cut to ``columns`` cells; no more of the arrays is read."""
        few = Table(self.header[:columns], first_columns(self.columns, columns))
        return [list(few.header), *islice(few.rows(), rows)]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure, all of its data at full precision, and its main number in a sentence."""

    figure: go.Figure
    table: Table
    alt: str

    def with_table(self, table: Table) -> Drawing:
        """The same figure with more behind it than it shows."""
        return replace(self, table=table)


def matrix_table(corner: str, rows: Sequence[str], columns: Sequence[str], values: NDArray[Any]) -> Table:
    """``values`` (R, C) between their labels; ``corner`` says what the rows are."""
    if values.shape != (len(rows), len(columns)):
        raise ValueError(f"{values.shape} does not fit {len(rows)} row and {len(columns)} column labels.")
    return Table((corner, *columns), (rows, values))


def row_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A table from its rows, of which there may be none."""
    return Table(header, [[row[place] for row in rows] for place in range(len(header))])


def first_columns(columns: Sequence[Column], count: int) -> list[Column]:
    """As many of the columns as make ``count`` cells a row; the last array is cut where it is wider."""
    first: list[Column] = []
    for column in columns:
        left = count - sum(map(width_of, first))
        if left > 0:
            first.append(column[:, :left] if isinstance(column, np.ndarray) and column.ndim == 2 else column)
    return first


def width_of(column: Column) -> int:
    return column.shape[1] if isinstance(column, np.ndarray) and column.ndim == 2 else 1


def cells(part: Any) -> list[str]:
    """One value, or one row of an array, as text."""
    if isinstance(part, (bool, np.bool_)) or (isinstance(part, np.ndarray) and part.dtype == np.bool_):
        part = np.asarray(part, dtype=np.uint8)
    values = part if isinstance(part, np.ndarray) and part.ndim else [part]
    return ["" if value != value else str(value) for value in values]
