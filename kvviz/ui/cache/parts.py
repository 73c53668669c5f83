"""The supporting figures of the Cache page; only the open part is computed."""

from __future__ import annotations

import streamlit as st

from kvviz.figures.theme import Side
from kvviz.ui.cache import layers, scores
from kvviz.ui.cache import view as look
from kvviz.ui.cache.view import Sides
from kvviz.ui.components.step_player import step_player
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.words import COUNTS_FROM_ONE


def draw(part: str, sides: Sides, layer: int, head: int) -> None:
    """The part that is open."""
    if part == "steps":
        steps(sides, layer, head)
    elif part == "time":
        over_time(sides, layer, head)
    elif part == "layers":
        layers.draw(sides)
    else:
        scores.draw(sides, layer, head)


def steps(sides: Sides, layer: int, head: int) -> None:
    """The slots of A or B step by step, its ring, and the steps of a short text written out."""
    told = meaning("step", "lifetime", "position", "slot")
    which = st.segmented_control("Cache of", ["A", "B"], default="A", key="player.side", required=True, help=told)
    side, _, run = sides["AB".index(which)]
    player(run, side, layer, head, which)
    left, right = st.columns([3, 2])
    if run.trace.setup.policy.is_ring:
        with right if run.trace.tokens <= look.FEW_TOKENS else left:
            show(look.ring_figure(run, layer, head, side), f"ring-{which}")
    if run.trace.tokens <= look.FEW_TOKENS:
        with left:
            st.markdown(f"**Every step of {which}** {COUNTS_FROM_ONE if run.count_from else ''}")
            st.markdown(look.steps_table(run, layer, head))


def player(run: Run, side: Side, layer: int, head: int, which: str) -> None:
    """The slots after each step, all KV heads of the layer to choose from."""
    policy = run.trace.setup.policy
    step_player(
        run.texts,
        run.trace.evicted_at[layer],
        heads=[f"KV head {h} (query heads {look.query_heads(run, h)})" for h in range(run.trace.kv_heads)],
        count_from=run.count_from,
        prompt_tokens=run.trace.prompt_tokens,
        start_head=head,
        budget=None if policy.acts_once else policy.size,  # what follows a prompt is added to it
        ring=policy.is_ring,
        roles=look.roles(run),
        side=side,
        key=f"player-{which}",
    )


def over_time(sides: Sides, layer: int, head: int) -> None:
    """Entries of one KV head and bytes of all, step by step."""
    left, right = st.columns(2)
    first = sides[0][2]
    with left:
        held = [(name, side, run.trace.entries()[layer, head]) for side, name, run in sides]
        show(look.held_figure(first, held, "entries", f"Entries, layer {layer}, KV head {head}"), "entries")
    with right:
        held = [(name, side, run.trace.bytes_at()) for side, name, run in sides]
        show(look.held_figure(first, held, "bytes", "Bytes in all layers (by the formula)"), "bytes")
