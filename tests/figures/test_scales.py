import itertools

import numpy as np
import pytest

from kvviz.figures.scales import Scale, shared_top
from tests.figures.examples import attention


@pytest.mark.parametrize("name", ["log", "linear", "no_sinks"])
@pytest.mark.parametrize("top", [1.0, 0.3, 1e-5])
def test_stops_run_from_0_to_1_and_never_back(name, top):
    places = [place for place, _ in Scale(name, top).stops()]
    assert places[0] == 0 and places[-1] == pytest.approx(1)
    assert all(a <= b for a, b in itertools.pairwise(places))


@pytest.mark.parametrize("name", ["log", "linear"])
def test_the_colour_of_a_weight_is_the_one_at_its_place_on_the_bar(name):
    scale = Scale(name, 1.0)
    places, colours = zip(*scale.stops(), strict=True)
    bar = dict(scale.bar().marker.colorscale)
    for share, colour in zip(np.linspace(0, 1, len(places)), colours, strict=True):
        value = places[colours.index(colour)]
        assert bar[min(bar, key=lambda at: abs(at - share))] == colour
        if value:
            assert scale.place(value) == pytest.approx(share)


def test_a_logarithmic_scale_gives_each_decade_the_same_room():
    """Known fault 143: the first tokens swallow a linear scale."""
    places = [Scale("log", 1.0).place(weight) for weight in (1e-4, 1e-3, 1e-2, 1e-1, 1)]
    assert places == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert Scale("log", 1.0).place(0) == 0


def test_ticks_name_round_values():
    assert Scale("log", 1.0).tick_texts() == ["≤ 0.0001", "0.001", "0.01", "0.1", "1"]
    assert Scale("linear", 1.0).tick_texts() == ["0", "0.25", "0.5", "0.75", "1"]


def test_an_unknown_scale_and_an_empty_one_are_refused():
    with pytest.raises(ValueError, match="choose log, linear or no_sinks"):
        Scale("sqrt", 1.0)
    with pytest.raises(ValueError, match="above 0"):
        Scale("linear", 0.0)


def test_the_shared_top_is_1_unless_sinks_are_left_out():
    one, other = attention(12), attention(12, window=3)
    assert shared_top([one, other], "log") == shared_top([one, other], "linear") == 1
    largest = max(np.nanmax(one[:, 2:]), np.nanmax(other[:, 2:]))
    assert shared_top([one, other], "no_sinks", sinks=2) == pytest.approx(largest)
    assert shared_top([one], "no_sinks", sinks=12) == 1
