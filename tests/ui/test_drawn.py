import numpy as np
import plotly.graph_objects as go
import pytest

from kvviz.figures import Drawing, Table
from kvviz.ui.shell import drawn as module
from kvviz.ui.shell.drawn import KEPT, drawn, frozen


def test_equal_arguments_give_the_picture_kept_and_others_a_new_one() -> None:
    calls = []

    def figure(values: np.ndarray, labels: list[str], title: str = "") -> Drawing:
        calls.append(title)
        return Drawing(go.Figure(), Table((), ()), "")

    first = drawn(figure, np.arange(4), ["a", "b"], title="x")
    assert drawn(figure, np.arange(4), ["a", "b"], title="x") is first and calls == ["x"]
    for arguments in ((np.arange(4.0), ["a", "b"]), (np.arange(4).reshape(2, 2), ["a", "b"]), (np.arange(4), ["a"])):
        assert drawn(figure, *arguments, title="x") is not first
    for title in map(str, range(KEPT)):
        drawn(figure, np.arange(4), ["a", "b"], title=title)
    before = len(calls)
    drawn(figure, np.arange(4), ["a", "b"], title="x")
    assert len(calls) == before + 1  # the oldest was let go


def test_arguments_are_known_by_their_content() -> None:
    assert frozen({"a": [np.arange(3), None]}) == frozen({"a": [np.arange(3), None]})
    assert frozen([np.arange(3)]) != frozen([np.arange(3, dtype=np.int32)])


def test_what_stands_behind_the_figures_kept_is_not_copied_and_stays_below_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Known fault 159: every figure ever drawn stays in memory."""

    def figure(values: np.ndarray) -> Drawing:
        return Drawing(go.Figure(), Table(("a",), (values,)), "")

    monkeypatch.setattr(module, "BYTES_LIMIT", 2000)
    module._drawings.clear()
    arrays = [np.full(100, place, dtype=np.float64) for place in range(4)]
    drawings = [drawn(figure, array) for array in arrays]
    assert all(drawing.table.columns[0] is array for drawing, array in zip(drawings, arrays, strict=True))
    assert drawn(figure, arrays[3].copy()) is drawings[3] and drawn(figure, arrays[0]) is not drawings[0]
    large = np.zeros(1000)
    assert drawn(figure, large) is drawn(figure, large)  # a single one is kept however large
