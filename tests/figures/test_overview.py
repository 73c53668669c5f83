import numpy as np
import pytest

from kvviz.figures import layer_head_grid
from kvviz.figures.overview import agreement_grid, round_step


def test_the_grid_has_layer_0_at_the_top_and_the_same_range_for_every_model():
    values = np.random.default_rng(0).random((30, 9))
    fig = layer_head_grid(values, name="sink mass", unit="share").figure
    np.testing.assert_allclose(fig.data[0].z, values, rtol=1e-6)
    assert (fig.data[0].zmin, fig.data[0].zmax) == (0, 1)
    assert list(fig.layout.yaxis.range) == [29.5, -0.5]
    assert fig.layout.xaxis.title.text == "head" and fig.layout.yaxis.title.text == "layer"
    assert any("sink mass (share)" in note.text for note in fig.layout.annotations)


def test_the_selected_cell_is_outlined():
    fig = layer_head_grid(np.zeros((4, 3)), name="entropy", unit="nats", selected=(2, 1), value_range=(0, 6)).figure
    assert {(shape.x0, shape.x1, shape.y0, shape.y1) for shape in fig.layout.shapes} == {(0.5, 1.5, 1.5, 2.5)}


def test_the_alt_text_names_the_largest_value_and_its_place():
    values = np.array([[0.1, 0.2], [0.9, np.nan]])
    alt = layer_head_grid(values, name="sink mass", unit="share").alt
    assert alt == "Sink mass of 2 layers × 2 heads: largest 0.9 share in layer 1, head 0; mean 0.4 share."
    nothing = layer_head_grid(np.full((1, 1), np.nan), name="entropy", unit="nats").alt
    assert "no value was recorded" in nothing


def test_a_range_that_does_not_grow_is_refused():
    with pytest.raises(ValueError, match="must grow"):
        layer_head_grid(np.zeros((1, 1)), name="x", unit="", value_range=(1, 1))


def test_ticks_step_in_round_numbers():
    assert [round_step(least) for least in (0, 1, 1.1, 3, 5.5, 11, 51)] == [1, 1, 2, 5, 10, 20, 100]


def test_agreement_of_heads_is_named_and_parted_by_kv_head() -> None:
    shares = np.array([[1.0, 0.5, 0.25, 0.25], [0.5, 1, 0.25, 0.25], [0.25, 0.25, 1, 0.75], [0.25, 0.25, 0.75, 1]])
    drawing = agreement_grid(shares, group=2, title="Layer 3")
    fig = drawing.figure
    assert (fig.data[0].zmin, fig.data[0].zmax) == (0, 1)
    assert drawing.alt == "Layer 3: two heads of 4 have 38% of their strongest keys in common on average."
    assert len(fig.layout.shapes) == 2  # one line each way between two KV heads


def test_one_head_has_nobody_to_agree_with() -> None:
    assert "nothing to compare" in agreement_grid(np.ones((1, 1))).alt
    assert "no value was recorded" in agreement_grid(np.full((2, 2), np.nan)).alt
