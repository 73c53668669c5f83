import csv
import io

import numpy as np
import pytest

from kvviz.figures import csv_of
from tests.figures.examples import attention, labels


def read(text):
    header, *rows = csv.reader(io.StringIO(text))
    values = [[float(cell) if cell else np.nan for cell in row[1:]] for row in rows]
    return header[1:], [row[0] for row in rows], np.array(values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_comes_back_from_its_csv(dtype):
    matrix = attention(25).astype(dtype)
    columns, rows, values = read(csv_of(matrix, labels(25), labels(25)))
    assert columns == rows == labels(25)
    np.testing.assert_array_equal(np.isnan(values), np.isnan(matrix))
    np.testing.assert_allclose(values, matrix, atol=1e-6)
    assert (values.astype(dtype)[~np.isnan(matrix)] == matrix[~np.isnan(matrix)]).all()


def test_whole_numbers_stay_whole():
    assert csv_of(np.array([[1, 2]]), ["s"], ["0 ,", '1 "']) == ',"0 ,","1 """\ns,1,2\n'


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="does not fit"):
        csv_of(np.zeros((2, 2)), ["a"], ["a", "b"])
