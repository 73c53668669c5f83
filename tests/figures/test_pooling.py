import numpy as np
import pytest

from kvviz.figures.pooling import pool, pool_labels, pooled_columns

NAN = np.nan


def test_a_small_matrix_is_left_alone():
    matrix = np.array([[0.25, NAN], [0.5, 0.5]], dtype=np.float32)
    pooled, factor = pool(matrix)
    assert factor == 1
    np.testing.assert_array_equal(pooled, matrix)


def test_a_block_becomes_its_largest_value_or_its_mean_without_what_is_not_there():
    matrix = np.array([[1, NAN, NAN, NAN], [3, 2, NAN, NAN], [5, 6, 7, NAN], [0, 1, 1, 2]], dtype=np.float32)
    largest, factor = pool(matrix, limit=2)
    assert factor == 2
    np.testing.assert_array_equal(largest, [[3, NAN], [6, 7]])
    mean, _ = pool(matrix, limit=2, how="mean")
    np.testing.assert_allclose(mean, [[2, NAN], [3, 10 / 3]], rtol=1e-6)


@pytest.mark.parametrize("count", [513, 1000, 2048])
def test_any_length_fits_the_limit_and_keeps_its_maximum(count):
    matrix = np.random.default_rng(count).random((count, count), dtype=np.float32)
    pooled, factor = pool(matrix)
    assert max(pooled.shape) <= 512
    assert pooled.shape == (-(-count // factor),) * 2
    assert pooled.max() == matrix.max() and pooled.dtype == np.float32


def test_columns_alone_keep_their_largest_and_what_is_not_there():
    np.testing.assert_array_equal(pooled_columns(np.array([[1.0, NAN, NAN]]), 2), [[1, NAN]])


def test_a_limit_below_1_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        pool(np.zeros((2, 2)), limit=0)


def test_labels_of_blocks_stay_distinct():
    assert pool_labels(["0 a", "1 a", "2 a"], 2) == ["0 a …", "2 a …"]
    assert pool_labels(["0 a", "1 a"], 1) == ["0 a", "1 a"]
