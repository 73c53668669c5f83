"""What is saved against what it costs, and the smallest budgets that work."""

from __future__ import annotations

import numpy as np
import pytest

from kvviz.figures.gone import gone_map
from kvviz.figures.limits import limit_table
from kvviz.figures.needles import loss_by_depth
from kvviz.figures.tradeoff import Setting, trade_off

SETTINGS = [
    Setting("h2o", "h2o, 64", 0.75, 0.3),
    Setting("window", "window, 64", 0.75, 1.3),
    Setting("window", "window, 128", 0.5, 0.2, "A"),
    Setting("full", "all", 0.0, 0.2),
]


def hollow(is_more_better: bool) -> list[str]:
    table = trade_off(SETTINGS, axis="x", is_more_better=is_more_better).table
    return [row[1] for row in table.rows() if row[4] == "1"]


def test_what_another_one_beats_on_both_is_hollow() -> None:
    assert hollow(is_more_better=False) == ["window, 64", "all"]
    assert hollow(is_more_better=True) == ["h2o, 64", "window, 128", "all"]
    drawing = trade_off(SETTINGS, axis="loss added (nats a token)", is_more_better=False, title="T")
    signs = {trace.name: list(trace.marker.symbol) for trace in drawing.figure.data}
    assert signs == {"h2o": ["circle"], "window": ["square-open", "square"], "full": ["diamond-open"]}
    assert list(drawing.figure.data[1].x) == [75, 50] and list(drawing.figure.data[1].text) == ["", "A"]
    said = "2 of 4 setups are beaten by no other; of these h2o, 64 saves most, 75% of the bytes"
    assert drawing.alt == f"T: {said} (loss added (nats a token): 0.3)."


def test_nothing_measured_yet_is_said() -> None:
    assert trade_off([], axis="x", is_more_better=True).alt == "Trade-off: 0 setups were measured."


def test_the_smallest_budgets_stand_in_their_cells() -> None:
    limits = {("h2o", "loss"): 64, ("h2o", "passkey"): 16, ("window", "loss"): None, ("window", "passkey"): 128}
    drawing = limit_table(["h2o", "window"], ["loss", "passkey"], limits, [16, 64, 128], title="T")
    cells = drawing.figure.data[0]
    assert cells.text.tolist() == [["64", "16"], ["none", "128"]] and cells.z.tolist() == [[2, 3], [0, 1]]
    assert drawing.alt == "T, of 16, 64, 128: h2o: loss 64, passkey 16; window: loss none, passkey 128."
    assert list(drawing.table.rows()) == [["h2o", "64", "16"], ["window", "none", "128"]]


def test_what_was_looked_at_is_named_with_its_layer() -> None:
    weights = np.array([[0.1, 0.0], [0.0, 0.4]])
    drawing = gone_map(weights, ["3 a", "9 b"], title="T")
    assert drawing.alt == "T: the largest weight, 0.4, is in layer 1 on token '9 b'."
    assert drawing.figure.data[0].zmax == pytest.approx(0.4)
    assert gone_map(np.zeros((2, 0)), []).alt.endswith("0 in all 2 layers.")
    with pytest.raises(ValueError, match="3 labels do not fit 2 columns"):
        gone_map(weights, ["a", "b", "c"])


def test_the_loss_at_each_depth_is_a_line_a_setup() -> None:
    drawing = loss_by_depth([("A", "a", np.array([1.0, 3.0])), ("B", "b", np.array([2.0, 2.0]))], [0, 100], title="T")
    assert [list(trace.x) for trace in drawing.figure.data] == [[0, 100], [0, 100]]
    assert drawing.alt == "T, mean over the depths in nats a token: A 2; B 2."
    assert next(drawing.table.rows()) == ["A", "1.0", "3.0"]
