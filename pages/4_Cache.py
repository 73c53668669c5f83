"""What does it still hold? Lifetimes of the tokens, the slots step by step, entries and bytes over time."""

import streamlit as st

from kvviz.figures.lifetimes import lifetimes
from kvviz.figures.series import entries_over_time
from kvviz.ui.cache import layers as layers_view
from kvviz.ui.cache import scores as scores_view
from kvviz.ui.cache import view as look
from kvviz.ui.components.step_player import step_player
from kvviz.ui.pages import open_page
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.page import show
from kvviz.ui.shell.words import COUNTS_FROM_ONE, side_words

page = open_page("Cache", "What does it still hold?")
a, b = page.runs()
layer, head = look.place(page.view, a)
page.headline(look.headline(a, layer, head))

sides = [("a", side_words("A", a.trace.setup), a), ("b", side_words("B", b.trace.setup), b)]
for column, (side, name, run) in zip(st.columns(2), sides, strict=True):
    with column:
        figure = drawn(
            lifetimes,
            run.trace.evicted_at[layer, head],
            run.labels,
            role_of=look.roles(run),
            side=side,
            count_from=run.count_from,
            prompt_tokens=run.trace.prompt_tokens,
            title=name,
        )
        show(figure, f"lifetimes-{side}", look.lifetimes_csv(run, layer))
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
    budget=None if policy.acts_once else getattr(policy, "budget", None),  # what follows a prompt is added to it
    ring=policy.name() == "rolling",
    roles=look.roles(run),
    side=side,
    key=f"player-{which}",
)
left, right = st.columns([3, 2])
if policy.name() == "rolling":
    with right if run.trace.tokens <= look.FEW_TOKENS else left:
        show(look.ring_figure(run, layer, head, side), "ring")
if run.trace.tokens <= look.FEW_TOKENS:
    with left:
        st.markdown(f"**Every step of {which}** {COUNTS_FROM_ONE if run.count_from else ''}")
        st.markdown(look.steps_table(run, layer, head))

left, right = st.columns(2)
options = {"prompt_tokens": a.trace.prompt_tokens, "count_from": a.count_from}
with left:
    lines = [(name, side, run.trace.entries()[layer, head]) for side, name, run in sides]
    title = f"Entries, layer {layer}, KV head {head}"
    show(drawn(entries_over_time, lines, "entries", title=title, **options), "entries", look.series_csv(lines, a))
with right:
    lines = [(name, side, run.trace.bytes_at()) for side, name, run in sides]
    title = "Bytes in all layers (by the formula)"
    show(drawn(entries_over_time, lines, "bytes", title=title, **options), "bytes", look.series_csv(lines, a))

layers_view.draw(sides)
scores_view.draw(a, b, layer, head)

page.lesson("cache")
page.try_this()
