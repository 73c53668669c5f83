import numpy as np
import pytest

from kvviz.figures import attention_map, shared_top, visibility
from tests.figures.examples import attention, labels


@pytest.mark.parametrize("scale", ["log", "linear", "no_sinks"])
def test_two_maps_of_one_scale_have_equal_colours(scale):
    """Known fault 138: the strip, the small map and the large one show different numbers or colours."""
    maps = [attention(20), attention(20, window=4)]
    top = shared_top(maps, scale)
    a, b = (attention_map(weights, labels(20), scale=scale, top=top).figure.data[0] for weights in maps)
    assert (a.zmin, a.zmax, a.colorscale) == (b.zmin, b.zmax, b.colorscale)
    assert a.zmin == 0 and a.zmax == top


def test_the_array_keeps_the_weights_and_the_blanks():
    weights = attention(20, window=4)
    heat = attention_map(weights, labels(20)).figure.data[0]
    np.testing.assert_array_equal(heat.z, weights)
    assert np.isnan(heat.z).sum() == 20 * 20 - 4 * 20 + 6
    assert heat.hoverongaps is False


def test_leaving_the_sinks_out_blanks_their_columns_only():
    """Known fault 143: the first tokens swallow a linear scale."""
    weights = attention(10)
    fig = attention_map(weights, labels(10), scale="no_sinks", sinks=3).figure
    z = fig.data[0].z
    assert np.isnan(z[:, :3]).all()
    np.testing.assert_array_equal(z[:, 3:], weights[:, 3:])
    assert "Left out: the first 3 keys." in fig.layout.title.subtitle.text
    assert fig.layout.shapes[0].x1 == 2.5


def test_repeated_tokens_keep_a_row_and_a_column_each():
    """Known fault 156: equal tokens merge into one place of an axis."""
    heat = attention_map(attention(40), labels(40)).figure.data[0]
    assert len(set(heat.x)) == len(set(heat.y)) == 40


def test_rows_are_labelled_from_the_first_query():
    fig = attention_map(attention(20)[15:], labels(20), first_query=15).figure
    assert fig.data[0].y[0].startswith("15 ") and fig.data[0].x[0].startswith("0 ")
    assert len(fig.data[0].y) == 5


def test_axes_say_who_attends_to_whom_and_what_a_row_predicts():
    """Known fault 137: a map does not say which axis attends and what a row predicts."""
    fig = attention_map(attention(5), labels(5)).figure
    assert "key" in fig.layout.xaxis.title.text
    assert "query" in fig.layout.yaxis.title.text and "predicts token i + 1" in fig.layout.yaxis.title.text
    assert fig.layout.yaxis.autorange == "reversed"
    assert any("attention weight (0 to 1)" in note.text for note in fig.layout.annotations)


def test_the_alt_text_has_the_share_of_the_first_keys():
    weights = np.array([[1, np.nan], [0.25, 0.75]], dtype=np.float32)
    alt = attention_map(weights, ["0 a", "1 b"], sinks=1, title="A").alt
    assert alt.startswith("A: attention from 2 queries to 2 keys")
    assert "62.5% of its attention to the first key" in alt
    assert "the largest single weight, 1, is from query '0 a' to key '0 a'" in alt


def test_one_token_and_no_weight_at_all_are_drawn():
    """Known fault 134: without weights an empty figure appears and nothing is said."""
    assert attention_map(attention(1), labels(1)).figure.data[0].z.shape == (1, 1)
    empty = attention_map(np.full((3, 3), np.nan, dtype=np.float32), labels(3))
    assert "no weight was recorded" in empty.alt


def test_a_long_text_is_pooled_and_says_so():
    """Known fault 132: a map of some hundred tokens is too large for the browser."""
    fig = attention_map(attention(600), labels(600)).figure
    assert fig.data[0].z.shape == (300, 300)
    assert len(set(fig.data[0].x)) == 300
    assert "2 × 2 tokens" in fig.layout.title.subtitle.text


def test_too_few_labels_are_refused():
    with pytest.raises(ValueError, match="4 labels are too few"):
        attention_map(attention(5), labels(4))


def test_a_mask_shows_which_keys_a_query_may_see():
    distance = np.arange(12)[:, None] - np.arange(12)
    mask = (distance >= 0) & (distance < 4)
    drawing = visibility(mask, labels(12, first=1))
    fig = drawing.figure
    assert fig.data[0].z.dtype == np.uint8
    assert [fig.data[0].x[key][0] for key in np.flatnonzero(fig.data[0].z[7])] == [
        "5",
        "6",
        "7",
        "8",
    ]
    assert "the last query sees 4, and no query sees more than 4" in drawing.alt
    with pytest.raises(ValueError, match="at most 512"):
        visibility(np.ones((600, 600), dtype=bool), labels(600))
