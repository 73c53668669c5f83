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


def strength(heat, value):
    """How far from the faint middle the colour of a difference is, 0 to 1, by its opacity."""
    places, colours = zip(*heat.colorscale, strict=True)
    opacities = [float(colour.removesuffix(")").split(",")[-1]) for colour in colours]
    found = np.interp(0.5 + 0.5 * value / heat.zmax, places, opacities)
    return (found - min(opacities)) / (1 - min(opacities))


def test_one_sink_does_not_blank_the_differences_in_the_middle():
    """A sink that differs by 0.85 took the whole scale, so differences of a hundredth were as pale as none."""
    a = np.full((12, 12), 0.02)
    b = np.full((12, 12), 0.01)
    a[:, 0], b[:, 0] = 0.9, 0.05
    heat = difference_map(a, b, labels(12)).figure.data[0]
    assert strength(heat, 0.85) == pytest.approx(1) and strength(heat, 0) == 0
    assert strength(heat, 0.01) == pytest.approx(np.log(0.01 / 1e-4) / np.log(0.85 / 1e-4), abs=0.02)
    assert strength(heat, -0.01) == pytest.approx(strength(heat, 0.01))
    linear = difference_map(a, b, labels(12), scale="linear").figure.data[0]
    assert strength(linear, 0.01) == pytest.approx(0.01 / 0.85, abs=0.002)


def test_without_the_first_keys_the_rest_has_the_scale_and_both_are_said():
    a, b = np.full((8, 8), 0.25), np.full((8, 8), 0.125)
    a[:, 0], a[6, 5] = 0.9, 0.75
    drawing = difference_map(a, b, labels(8), scale="no_sinks")
    heat = drawing.figure.data[0]
    assert np.isnan(heat.z[:, :4]).all() and heat.zmax == 0.625
    assert "largest difference in a single weight is +0.775" in drawing.alt
    assert "beyond the first 4 keys it is at most 0.625" in drawing.alt


def test_equal_maps_differ_nowhere():
    fig = difference_map(attention(4), attention(4), labels(4)).figure
    assert (np.nan_to_num(fig.data[0].z) == 0).all() and fig.data[0].zmax == 1


def test_maps_of_different_size_are_refused():
    with pytest.raises(ValueError, match="same number"):
        difference_map(attention(4), attention(5), labels(5))
