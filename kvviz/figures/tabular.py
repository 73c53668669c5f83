"""A figure's numbers as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
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
