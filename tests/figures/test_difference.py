import numpy as np
import pytest

from kvviz.figures import difference_map
from tests.figures.examples import attention, labels


def test_a_difference_is_symmetric_about_zero_and_blank_unless_both_could_look():
    a, b = attention(12), attention(12, window=3, seed=1)
    drawing = difference_map(a, b, labels(12))
    fig = drawing.figure
    heat = fig.data[0]
    assert heat.zmin == -heat.zmax == -np.nanmax(np.abs(a - b))
    np.testing.assert_allclose(heat.z, a - b)
    np.testing.assert_array_equal(np.isnan(heat.z), np.isnan(a) | np.isnan(b))
    places = [place for place, _ in heat.colorscale]
    np.testing.assert_allclose(places, [1 - place for place in reversed(places)])
    assert f"{heat.zmax:.3g}" in drawing.alt


def test_equal_maps_differ_nowhere():
    fig = difference_map(attention(4), attention(4), labels(4)).figure
    assert (np.nan_to_num(fig.data[0].z) == 0).all() and fig.data[0].zmax == 1


def test_maps_of_different_size_are_refused():
    with pytest.raises(ValueError, match="same number"):
        difference_map(attention(4), attention(5), labels(5))
