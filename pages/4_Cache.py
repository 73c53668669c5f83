"""What does it still hold? Lifetimes of the tokens, the slots step by step, entries and bytes over time."""

import streamlit as st

from kvviz.figures.lifetimes import lifetimes
from kvviz.figures.ring import ring
from kvviz.figures.series import entries_over_time
from kvviz.ui import cache_view as look
from kvviz.ui.components.step_player import step_player
from kvviz.ui.page import open_page, show

page = open_page("Cache", "What does it still hold?")
headline = st.empty()
a, b = page.runs()
layer, head = look.place(page.view, a)
with headline.container():
    page.headline(look.headline(a, layer, head))

sides = [("a", "A", a), ("b", "B", b)]
for column, (side, name, run) in zip(st.columns(2), sides, strict=True):
    with column:
        figure = lifetimes(
            run.trace.evicted_at[layer, head],
            run.labels,
            role_of=look.roles(run),
            side=side,
            count_from=run.count_from,
            prompt_tokens=run.trace.prompt_tokens,
            title=f"{name}: {run.trace.setup}",
        )
        show(figure, f"lifetimes-{side}", look.lifetimes_csv(run, layer))

st.subheader("Step by step", anchor=False)
which = st.segmented_control("Cache of", ["A", "B"], default="A", key="player.side", required=True)
run = a if which == "A" else b
policy = run.trace.setup.policy
step_player(
    run.texts,
    run.trace.evicted_at[layer],
    heads=[f"KV head {h} (query heads {look.query_heads(run, h)})" for h in range(run.trace.kv_heads)],
    count_from=run.count_from,
    prompt_tokens=run.trace.prompt_tokens,
    budget=getattr(policy, "budget", None),
    ring=policy.name() == "rolling",
    roles=look.roles(run),
    side="a" if which == "A" else "b",
    key=f"player-{which}",
)
if policy.name() == "rolling":
    last = run.trace.tokens - 1
    held = run.trace.kept(layer, head, last)
    title = f"The ring after the last token: slot = position mod {policy.budget}"
    show(ring(held, policy.budget, run.labels, last, side="a", count_from=run.count_from, title=title), "ring")

left, right = st.columns(2)
options = {"prompt_tokens": a.trace.prompt_tokens, "count_from": a.count_from}
with left:
    lines = [(f"{name}: {r.trace.setup}", side, r.trace.entries()[layer, head]) for side, name, r in sides]
    title = f"Entries, layer {layer}, KV head {head}"
    show(entries_over_time(lines, "entries", title=title, **options), "entries", look.series_csv(lines, a))
with right:
    lines = [(f"{name}: {r.trace.setup}", side, r.trace.bytes_at()) for side, name, r in sides]
    title = "Bytes in all layers (by the formula)"
    show(entries_over_time(lines, "bytes", title=title, **options), "bytes", look.series_csv(lines, a))

page.lesson("cache")
page.try_this(look.IDEAS)
