"""Loss against bytes: one curve a policy; a setup that another one beats on both is hollow."""

from __future__ import annotations

import numpy as np

from kvviz.figures.needles import needle_grid
from kvviz.figures.sweep import Kept, is_beaten, loss_against_bytes

FULL = Kept("full", "all", 4096, 2.0)
POINTS = [
    Kept("h2o", "budget 64", 1024, 2.3),
    Kept("h2o", "budget 128", 2048, 2.1),
    Kept("window", "budget 64", 1024, 3.1),
    Kept("window", "budget 128", 2048, 2.9),
]


def test_a_curve_a_policy_along_its_bytes() -> None:
    drawing = loss_against_bytes(POINTS[::-1], FULL)
    curves = {trace.name: (list(trace.x), list(trace.y)) for trace in drawing.figure.data}
    assert curves == {"h2o": ([1.0, 2.0], [2.3, 2.1]), "window": ([1.0, 2.0], [3.1, 2.9])}
    assert "KiB" in drawing.figure.layout.xaxis.title.text and "nats" in drawing.figure.layout.yaxis.title.text
    assert drawing.alt.endswith("at 25% of the bytes h2o loses 0.3 nats and window 1.1.")
    assert len(list(drawing.table.rows())) == 5


def test_what_is_beaten_on_both_is_hollow() -> None:
    assert [is_beaten(point, POINTS) for point in POINTS] == [False, False, True, True]
    assert not is_beaten(POINTS[0], [POINTS[0], POINTS[0]])  # an equal one beats nothing
    signs = {trace.name: list(trace.marker.symbol) for trace in loss_against_bytes(POINTS, FULL).figure.data}
    assert signs["h2o"] == ["circle", "circle"] and signs["window"] == ["square-open", "square-open"]


def test_nothing_measured_yet_is_said() -> None:
    assert "nothing was measured yet" in loss_against_bytes([], FULL).alt


def test_a_miss_is_forgotten_or_not_found() -> None:
    found, held = np.array([[1.0, 0.0, 0.0]]), np.array([[1.0, 0.9, 0.1]])
    held[0, 0] = np.nan  # none was missed
    drawing = needle_grid(["h2o"], [0, 50, 100], found, held, tries=1, pairs=10, title="Pass key")
    words = ["1 of 1", "0 of 1<br>not found<br>held 9/10", "0 of 1<br>forgotten<br>held 1/10"]
    assert drawing.figure.data[0].text.tolist() == [words]
    assert drawing.figure.data[0].customdata[0][2].endswith("forgotten: held by 1 of 10 layers and KV heads")
    assert drawing.alt == "Pass key, mean over the depths: h2o 33%."
    assert "depth" in drawing.figure.layout.xaxis.title.text
