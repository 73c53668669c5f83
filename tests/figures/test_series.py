import numpy as np
import pytest

from kvviz.figures import entries_over_time, series_lines, theme
from kvviz.figures.series import binary_unit, running_mean

NAN = np.nan


def test_bytes_are_drawn_in_the_binary_unit_that_fits():
    assert binary_unit(0) == (1, "B") and binary_unit(1023) == (1, "B")
    assert binary_unit(1024) == (1024, "KiB") and binary_unit(5 * 1024**3) == (1024**3, "GiB")
    drawing = entries_over_time([("A", "a", np.array([0, 1536, 2048]))], "bytes")
    fig = drawing.figure
    assert fig.data[0].y.tolist() == [0, 1.5, 2]
    assert "KiB" in fig.layout.yaxis.title.text and "A: 2 KiB" in drawing.alt


def test_entries_are_counted_not_scaled():
    drawing = entries_over_time([("A", "a", np.arange(1, 2001)), ("B", "b", np.ones(2000, dtype=int))])
    fig = drawing.figure
    assert fig.data[0].y[-1] == 2000 and "entries" in fig.layout.yaxis.title.text
    assert "A: 2,000 entries; B: 1 entry" in drawing.alt


def test_a_and_b_differ_in_colour_and_in_dash():
    fig = entries_over_time([("one", "a", np.arange(4)), ("two", "b", np.arange(4))]).figure
    assert [trace.line.color for trace in fig.data] == [theme.ACCENT["a"], theme.ACCENT["b"]]
    assert [trace.line.dash for trace in fig.data] == ["solid", "dash"]
    assert fig.layout.showlegend


def test_steps_are_numbered_and_the_prompt_s_end_is_marked():
    fig = entries_over_time([("A", "a", np.arange(1, 13))], count_from=1, prompt_tokens=4).figure
    assert fig.data[0].x.tolist() == list(range(1, 13))
    assert fig.layout.shapes[0].x0 == 4.5


def test_a_running_mean_leaves_out_what_is_missing():
    np.testing.assert_allclose(running_mean(np.array([1.0, 2, 3, 4]), 3), [1.5, 2, 3, 3.5])
    np.testing.assert_allclose(running_mean(np.array([1.0, NAN, 3]), 3), [1, 2, 3])
    np.testing.assert_array_equal(running_mean(np.array([NAN, NAN]), 3), [NAN, NAN])
    np.testing.assert_array_equal(running_mean(np.array([1.0, NAN]), 1), [1, NAN])


@pytest.mark.parametrize("width", [1, 2, 5, 64])
def test_a_constant_stays_constant_under_smoothing(width):
    np.testing.assert_allclose(running_mean(np.full(20, 2.5), width), 2.5)


def test_smoothing_is_named_on_the_axis_and_not_in_the_mean():
    losses = np.array([1.0, 2, 3, NAN])
    drawing = series_lines([("A", "a", losses)], y_title="loss (nats per token)", smooth_over=2)
    fig = drawing.figure
    assert fig.layout.yaxis.title.text == "loss (nats per token), running mean of 2 values"
    assert "A 2" in drawing.alt


def test_nothing_at_all_and_a_single_step_are_drawn():
    assert "no value" in series_lines([("A", "a", np.array([]))], y_title="nats").alt
    assert entries_over_time([("A", "a", np.array([1]))]).figure.data[0].mode == "markers"


def test_a_long_name_takes_two_lines_in_the_legend_and_one_in_the_table() -> None:
    name = "A: PyramidKV, budget 64, observe 32, kernel 5, pooling average, beta 20"
    long, brief = (series_lines([(label, "a", np.ones(3))], y_title="share") for label in (name, "A: Full cache"))
    assert long.figure.data[0].name.replace("<br>", " ") == name and long.figure.data[0].name.count("<br>") == 1
    assert long.figure.layout.margin.t > brief.figure.layout.margin.t
    assert long.table.header == ("step", name)


@pytest.mark.parametrize(
    ("x_title", "said"),
    [("step", "step"), ("layer", "layer"), ("query (position)", "query"), ("token (position)", "token")],
)
def test_the_alt_text_says_along_what_the_values_stand(x_title, said) -> None:
    drawing = series_lines([("A", "a", np.array([1.0, 3.0]))], y_title="share", x_title=x_title, title="T")
    assert drawing.alt == f"T, one value per {said}; mean: A 2."
    assert drawing.table.header == (said, "A")
