import csv
import io

import numpy as np
import plotly.graph_objects as go
import pytest

from kvviz.figures import Drawing, Table
from kvviz.figures.drawing import matrix_table, row_table
from tests.figures.examples import attention, labels


def read(text):
    header, *rows = csv.reader(io.StringIO(text))
    values = [[float(cell) if cell else np.nan for cell in row[1:]] for row in rows]
    return header[1:], [row[0] for row in rows], np.array(values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_comes_back_from_its_csv(dtype):
    """Known fault 135: the numbers behind a figure cannot be had, or only rounded."""
    matrix = attention(25).astype(dtype)
    columns, rows, values = read(matrix_table("query", labels(25), labels(25), matrix).csv())
    assert columns == rows == labels(25)
    np.testing.assert_array_equal(np.isnan(values), np.isnan(matrix))
    assert (values.astype(dtype)[~np.isnan(matrix)] == matrix[~np.isnan(matrix)]).all()


def test_whole_numbers_stay_whole_and_yes_is_1():
    assert matrix_table("", ["s"], ["0 ,", '1 "'], np.array([[1, 2]])).csv() == ',"0 ,","1 """\ns,1,2\n'
    flags = np.array([True, False])
    assert Table(("a", "b", "c"), (flags, [True, False], range(2))).csv() == "a,b,c\n1,1,0\n0,0,1\n"
    assert matrix_table("", ["s"], ["x", "y"], flags[None]).csv() == ",x,y\ns,1,0\n"


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="does not fit"):
        matrix_table("", ["a"], ["a", "b"], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="1 names do not fit 2 columns"):
        Table(("a",), (range(2), range(2)))
    with pytest.raises(ValueError, match=r"2 columns of \[1, 2\] rows"):
        Table(("a", "b"), (range(2), range(1)))


def test_no_rows_leave_the_header():
    assert row_table(("a", "b"), []).csv() == "a,b\n" and row_table(("a", "b"), [(1, "x")]).csv() == "a,b\n1,x\n"
    assert matrix_table("", [], ["x"], np.zeros((0, 1))).csv() == ",x\n"


def test_a_table_holds_the_arrays_themselves_and_writes_nothing_before_it_is_asked():
    matrix = np.zeros((2, 3), dtype=np.float32)
    table = matrix_table("", ["a", "b"], ["x", "y", "z"], matrix)
    assert table.columns[1] is matrix and table.nbytes == 24
    assert next(table.rows()) == ["a", "0.0", "0.0", "0.0"]


def test_the_file_says_that_it_is_utf_8():
    """Without the mark a spreadsheet showed the sign of a space, and every CJK token, as three other letters."""
    table = Table(("token",), (["0 ␣the", "1 你好"],))
    assert table.file().startswith(b"\xef\xbb\xbf") and table.file().decode("utf-8-sig") == table.csv()


def test_the_head_of_a_table_reads_no_more_than_it_shows():
    table = Table(("token", *"abcd", "e"), (["x", "y", "z"], np.arange(12).reshape(3, 4), [7, 8, 9]))
    assert table.height == 3
    assert table.head(2, 3) == [["token", "a", "b"], ["x", "0", "1"], ["y", "4", "5"]]
    assert table.head(9, 9) == [list(table.header), *table.rows()]


def test_another_table_leaves_the_figure_and_its_sentence():
    drawing, more = Drawing(go.Figure(), Table((), ()), "1."), Table(("a",), ([1],))
    other = drawing.with_table(more)
    assert other.figure is drawing.figure and other.alt == "1." and other.table is more
