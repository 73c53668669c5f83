import numpy as np
import plotly.graph_objects as go

from kvviz.ui.shell.drawn import KEPT, drawn, frozen


def test_equal_arguments_give_the_picture_kept_and_others_a_new_one() -> None:
    calls = []

    def figure(values: np.ndarray, labels: list[str], title: str = "") -> go.Figure:
        calls.append(title)
        return go.Figure()

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
