import numpy as np
import pytest

from kvviz.figures.bars import bars


def test_bars_start_at_zero_and_name_their_unit_and_numbers():
    drawing = bars(["full", "window"], [3.16, 4.44], unit="nats per token", axis="loss", title="Board")
    fig = drawing.figure
    assert list(fig.data[0].x) == [3.16, 4.44] and list(fig.data[0].text) == ["3.16", "4.44"]
    assert fig.layout.xaxis.range[0] == 0 and fig.layout.xaxis.title.text == "loss (nats per token)"
    assert drawing.alt == "Board in nats per token: full 3.16; window 4.44."


def test_a_missing_value_is_a_dash():
    assert list(bars(["a", "b"], [1.0, np.nan], unit="x", axis="y").figure.data[0].text) == ["1", "—"]


def test_names_and_values_must_fit():
    with pytest.raises(ValueError, match="2 names do not fit 1 values"):
        bars(["a", "b"], [1.0], unit="x", axis="y")
