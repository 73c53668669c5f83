"""Scores on the Cache page: what each token received, and the sources' example put to the policy itself."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.scores import score_bars
from kvviz.models.heads import group_of
from kvviz.policies import View
from kvviz.policies.attention_window import AttentionWindow
from kvviz.ui.cache import votes
from kvviz.ui.cache.view import Sides
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.words import spans

Floats = NDArray[np.floating]
EXAMPLE = (0.1, 0.8, 0.2, 0.1, 0.7, 0.1, 0.6, 0.2)  # scores of tokens 1 to 8, of which four may stay
HEAVY = theme.HELD_CODES["heavy"]


def draw(sides: Sides, layer: int, head: int) -> None:
    """A part of the page: a sentence on what raw sums favour, bars of votes, of what was received, the example."""
    (_, _, a), (_, _, b) = sides
    if words := age_words(a, b):
        st.markdown(words, help=meaning("heavy hitter"))
    for side, _, run in sides:
        votes.draw(run, side, layer, head)
    left, right = st.columns(2)
    with left:
        held = a.trace.evicted_at[layer, head] >= a.trace.tokens
        bars = drawn(
            score_bars,
            received(a, layer, head),
            held,
            a.labels,
            y_title="attention received (sum of weights)",
            title=f"Attention received while in the cache, A, layer {layer}, KV head {head}",
            is_log=True,
        )
        show(bars, "received")
    with right:
        kept = example_kept(4)
        labels = [str(token) for token in range(1, len(EXAMPLE) + 1)]
        title = "A worked example: eight scores, budget 4"
        figure = drawn(
            score_bars, np.array(EXAMPLE), kept, labels, x_title="token (counted from 1)", y_title="score", title=title
        )
        show(figure, "example")
        places = spans((np.flatnonzero(kept) + 1).tolist())
        st.caption(
            f"The rule of the attention-window policy, applied to these scores (tokens count from 1): {places} stay. "
            "Three have the highest scores, and token 8 is the latest."
        )


def received(run: Run, layer: int, head: int) -> Floats:
    """What each token got from all queries that saw it, mean over the query heads of the KV head, (T,)."""
    assert run.trace.received is not None
    group = group_of(run.trace.received.shape[1], run.trace.kv_heads)
    mean: Floats = run.trace.received[layer, head * group : (head + 1) * group].mean(axis=0)
    return mean


def example_kept(budget: int) -> NDArray[np.bool_]:
    """What the policy itself keeps of the example, (8,) bool: nothing here decides but ``keep``."""
    import torch  # takes seconds: the settings are there before

    scores = torch.tensor([EXAMPLE], dtype=torch.float64)
    count = len(EXAMPLE)
    view = View(
        positions=torch.arange(count)[None],
        newest=count - 1,
        layer=torch.zeros(1, 1),
        head=torch.zeros(1, 1),
        layers=1,
        prompt_tokens=count,
        limit=budget,
        statistics={"rows": scores[:, None]},
    )
    kept: NDArray[np.bool_] = AttentionWindow(budget=budget, recent=1, observe=1).keep(view)[0].numpy()
    return kept


def age_words(a: Run, b: Run) -> str:
    """Where the heavy hitters stand in the text: raw sums favour old tokens, which more queries could see."""
    means = {name: mean for name, run in (("A", a), ("B", b)) if (mean := heavy_position(run)) is not None}
    if not means:
        return ""
    said = ", ".join(f"{mean:.0f} under {name}" for name, mean in means.items())
    return (
        f"The mean position of the heavy hitters still in the cache is {said}, over all layers and KV heads (the text "
        f"ends at {a.trace.tokens - 1 + a.count_from}). A raw sum favours old tokens, because more queries could add "
        "to it; `normalise` divides by the number of those queries."
    )


def heavy_position(run: Run) -> float | None:
    """Mean position of the tokens held as heavy hitters after the last step."""
    held = run.trace.evicted_at >= run.trace.tokens
    heavy = held & (run.roles[-1] == HEAVY)
    if not heavy.any():
        return None
    return float(np.nonzero(heavy)[-1].mean()) + run.count_from
