import numpy as np
import pytest

from kvviz.figures import lifetimes, role_codes, theme
from kvviz.figures.lifetimes import cache_codes
from tests.figures.examples import labels, random_lifetimes, window_lifetimes


def streaming_role(position, newest):
    return "sink" if position < 2 else "recent"


@pytest.mark.parametrize("seed", range(5))
def test_codes_say_exactly_what_is_in_the_cache(seed):
    evicted_at = random_lifetimes(30, seed)
    codes = cache_codes(evicted_at, role_codes(streaming_role, 30))
    for step in range(30):
        for token in range(30):
            if token > step:
                assert codes[step, token] == 0
            elif step >= evicted_at[token]:
                assert codes[step, token] == theme.GONE_CODE
            else:
                assert codes[step, token] == theme.HELD_CODES[streaming_role(token, step)]


def test_the_toy_window_holds_5_to_8_after_step_8():
    codes = cache_codes(window_lifetimes(12, 4))
    held = np.flatnonzero(codes[7] == theme.OTHER_CODE) + 1
    assert held.tolist() == [5, 6, 7, 8]


def test_an_unknown_role_is_shown_as_held():
    assert set(np.unique(role_codes(lambda position, newest: "odd", 3))) == {0, theme.OTHER_CODE}


def test_every_code_has_its_own_flat_colour():
    heat = lifetimes(random_lifetimes(10), labels(10), role_of=role_codes(streaming_role, 10)).figure.data[0]
    codes = theme.GONE_CODE + 1
    assert heat.z.dtype == np.uint8 and (heat.zmin, heat.zmax) == (-0.5, codes - 0.5)
    starts, ends = heat.colorscale[::2], heat.colorscale[1::2]
    assert [colour for _, colour in starts] == [colour for _, colour in ends]
    assert [colour for _, colour in starts] == [theme.CLEAR, *(role.colour for role in theme.ROLES), theme.GONE]
    np.testing.assert_allclose([place for place, _ in starts], np.arange(codes) / codes)


def test_the_legend_names_the_states_that_occur():
    fig = lifetimes(window_lifetimes(8, 4), labels(8), role_of=role_codes(streaming_role, 8)).figure
    assert [trace.name for trace in fig.data if trace.showlegend] == ["sink", "recent", "evicted"]
    plain = lifetimes(np.full(8, 8), labels(8), side="b")
    assert [trace.name for trace in plain.figure.data if trace.showlegend] == ["in the cache"]
    assert theme.ACCENT["b"] in str(plain.figure.data[0].colorscale)


def test_the_hover_tells_each_token_s_life_in_the_numbering_of_the_labels():
    fig = lifetimes(window_lifetimes(6, 4), labels(6, first=1), count_from=1).figure
    assert fig.data[0].hovertemplate == "step %{y}<extra></extra>"
    assert fig.data[0].y.tolist() == [1, 2, 3, 4, 5, 6]
    stories = fig.data[1].text
    assert stories[0] == "in the cache from step 1, evicted at step 5"
    assert stories[-1] == "in the cache from step 6 to the end"
    assert list(fig.data[1].x) == list(fig.data[0].x)


def test_the_alt_text_counts_what_is_held():
    alt = lifetimes(window_lifetimes(12, 4), labels(12, first=1), count_from=1, title="A").alt
    assert alt == "A: after step 12 the cache holds 4 of 12 tokens; the first eviction is at step 5."
    full = lifetimes(np.full(1, 1), labels(1)).alt
    assert full == "After step 0 the cache holds 1 of 1 token; none has been evicted."


def test_the_end_of_the_prompt_is_marked_after_its_last_step():
    fig = lifetimes(window_lifetimes(12, 4), labels(12), prompt_tokens=4).figure
    assert fig.layout.shapes[0].y0 == 3.5
    assert not lifetimes(window_lifetimes(12, 4), labels(12), prompt_tokens=12).figure.layout.shapes


def test_a_long_text_is_thinned_and_every_cell_stays_true():
    evicted_at = random_lifetimes(1100)
    fig = lifetimes(evicted_at, labels(1100)).figure
    z = fig.data[0].z
    assert z.shape == (367, 367)
    np.testing.assert_array_equal(z, cache_codes(evicted_at)[::3, ::3])
    assert "one in 3 steps and one in 3 tokens" in fig.layout.title.subtitle.text.replace("<br>", " ")
