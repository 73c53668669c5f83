"""Votes on the Cache page: what a policy that pools counted when the prompt ended, before and after pooling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.figures import Drawing
from kvviz.figures.scores import score_bars
from kvviz.figures.theme import Side
from kvviz.models.heads import group_of
from kvviz.policies import View
from kvviz.policies.base import Moment
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.words import plain, plural

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Vote:
    """The choice at the prompt's end in one KV head, over the P tokens of the prompt; NaN = stays without a vote."""

    votes: Floats  # (P,) as counted
    scores: Floats  # (P,) pooled, by which the policy ranks
    kept: Bools  # (P,) by the scores
    kept_unpooled: Bools  # (P,) what the votes themselves would keep

    @property
    def exchanged(self) -> int:
        """How many tokens stay only because of the pooling."""
        return int((self.kept & ~self.kept_unpooled).sum())

    @property
    def ranked(self) -> int:
        """How many tokens stay by their score, and not in any case."""
        return int((self.kept & np.isfinite(self.scores)).sum())


def draw(run: Run, side: Side, layer: int, head: int) -> None:
    """Both bars and what pooling changed, under a policy that pools and had something to drop."""
    vote = vote_of(run, layer, head)
    if vote is None:
        return
    place = f"{side.upper()}, layer {layer}, KV head {head}"
    st.markdown(plain(vote_words(vote, place)))
    left, right = st.columns(2)
    with left:
        title = f"Votes before pooling, {place}"
        show(figure(run, vote.votes, vote.kept_unpooled, vote.kept, side, title), f"votes-{side.upper()}")
    with right:
        title = f"Votes after pooling, {place}"
        show(figure(run, vote.scores, vote.kept, vote.kept, side, title), f"pooled-votes-{side.upper()}")


def vote_of(run: Run, layer: int, head: int) -> Vote | None:
    """The choice of one KV head, asked of the policy itself; None where it does not pool or dropped nothing."""
    policy, view = run.trace.setup.policy, view_at_prompt_end(run, layer)
    if view is None:
        return None
    votes, scores = policy.votes(view)[head], policy.score(view)[head]  # type: ignore[attr-defined]
    unpooled = replace(policy, kernel=1).keep(view)[head]  # type: ignore[call-arg]
    stays = scores.isinf()
    counted, pooled = (part.masked_fill(stays, np.nan).numpy() for part in (votes, scores))
    return Vote(counted, pooled, policy.keep(view)[head].numpy(), unpooled.numpy())


def view_at_prompt_end(run: Run, layer: int) -> View | None:
    """What the policy saw of a layer when the prompt's last token had attended; its rows come from the maps."""
    import torch  # takes seconds: the settings are there before

    trace, policy = run.trace, run.trace.setup.policy
    prompt = trace.prompt_tokens
    limit = policy.limit(Moment(prompt - 1, layer, trace.layers, prompt)) if policy.pools else None
    if limit is None or limit >= prompt or (layer, 0) not in trace.maps:
        return None
    return View(
        positions=torch.arange(prompt)[None].expand(trace.kv_heads, -1),
        newest=prompt - 1,
        layer=torch.full((1, 1), layer),
        head=torch.arange(trace.kv_heads)[:, None],
        layers=trace.layers,
        prompt_tokens=prompt,
        limit=limit,
        statistics={"rows": latest_rows(run, layer, policy.observes)},
    )


def latest_rows(run: Run, layer: int, count: int) -> Tensor:
    """The attention of the prompt's last queries, mean over the query heads of each KV head, (H, n, P)."""
    import torch

    trace, prompt = run.trace, run.trace.prompt_tokens
    rows = np.stack([trace.maps[layer, head][prompt - count : prompt, :prompt] for head in range(trace.query_heads)])
    known = torch.from_numpy(np.nan_to_num(rows))
    return known.unflatten(0, (trace.kv_heads, group_of(trace.query_heads, trace.kv_heads))).mean(1)


def vote_words(vote: Vote, place: str) -> str:
    """What pooling changed, in numbers."""
    return (
        f"When the prompt ended, {plural(int(vote.kept.sum()), 'token')} stayed ({place}): "
        f"{vote.ranked} by the votes of the last queries, and the {int(np.isnan(vote.scores).sum())} latest anyway. "
        f"Pooling gives each token its neighbours' votes too: {vote.exchanged} of the {vote.ranked} are there because "
        "of it and would have left by their own votes."
    )


def figure(run: Run, scores: Floats, passing: Bools, kept: Bools, side: Side, title: str) -> Drawing:
    """One bar a token of the prompt; the line is the lowest score of those ``passing``."""
    return drawn(
        score_bars,
        scores,
        kept,
        run.labels[: len(scores)],
        y_title="votes (sum of weights)",
        side=side,
        is_log=True,
        cut=float(np.nanmin(scores[passing & np.isfinite(scores)], initial=np.inf)),
        held_words="kept when the prompt ended",
        title=title,
    )
