"""What does it still hold? Lifetimes of the tokens, the slots step by step, entries and bytes over time."""

import streamlit as st

from kvviz.ui.cache import layers as layers_view
from kvviz.ui.cache import scores as scores_view
from kvviz.ui.cache import view as look
from kvviz.ui.components.step_player import step_player
from kvviz.ui.pages import open_page
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.page import show
from kvviz.ui.shell.words import COUNTS_FROM_ONE, side_words

page = open_page("Cache", "What does it still hold?")
a, b = page.runs()
layer, head = look.place(page.view, a)
page.headline(look.headline(a, layer, head))

sides: layers_view.Sides = [("a", side_words("A", a.trace.setup), a), ("b", side_words("B", b.trace.setup), b)]
for column, (side, name, run) in zip(st.columns(2), sides, strict=True):
    with column:
        show(look.lifetimes_figure(run, layer, head, side, name), f"lifetimes-{side}")
page.paint()

st.subheader("Step by step", anchor=False, help=meaning("step", "lifetime", "position", "slot"))
which = st.segmented_control("Cache of", ["A", "B"], default="A", key="player.side", required=True)
side, name, run = sides["AB".index(which)]
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
left, right = st.columns([3, 2])
if policy.is_ring:
    with right if run.trace.tokens <= look.FEW_TOKENS else left:
        show(look.ring_figure(run, layer, head, side), "ring")
if run.trace.tokens <= look.FEW_TOKENS:
    with left:
        st.markdown(f"**Every step of {which}** {COUNTS_FROM_ONE if run.count_from else ''}")
        st.markdown(look.steps_table(run, layer, head))

left, right = st.columns(2)
with left:
    held = [(name, side, run.trace.entries()[layer, head]) for side, name, run in sides]
    show(look.held_figure(a, held, "entries", f"Entries, layer {layer}, KV head {head}"), "entries")
with right:
    held = [(name, side, run.trace.bytes_at()) for side, name, run in sides]
    show(look.held_figure(a, held, "bytes", "Bytes in all layers (by the formula)"), "bytes")

layers_view.draw(sides)
scores_view.draw(a, b, layer, head)

page.lesson("cache")
page.try_this()
