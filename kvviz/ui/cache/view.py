"""What the Cache page says in words, and the figures that other pages show too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from kvviz.figures import Drawing, theme
from kvviz.figures.lifetimes import Codes, lifetimes
from kvviz.figures.ring import ring
from kvviz.figures.series import Series, entries_over_time
from kvviz.models.heads import group_of
from kvviz.ui.cache.settings import CacheSettings
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import joined, listed, plural, setup_words, side_words

Sides = list[tuple[theme.Side, str, Run]]

FEW_TOKENS = 24  # up to so many the steps are written out, one by one


def sides_of(a: Run, b: Run) -> Sides:
    """A and B with their names."""
    return [("a", side_words("A", a.trace.setup), a), ("b", side_words("B", b.trace.setup), b)]


def needs_maps(view: View) -> bool:
    """Whether votes are shown, which are read off the maps of the layer."""
    pools = view.experiment.setup.policy.pools or view.versus.policy.pools
    return pools and view.of(CacheSettings).part == "scores"


def place(view: View, run: Run) -> tuple[int, int]:
    """The layer and KV head that the sidebar's layer and query head mean in this model."""
    layers, kv_heads = run.trace.layers, run.trace.kv_heads
    group = group_of(run.trace.query_heads, kv_heads)
    return min(view.layer, layers - 1), min(view.head // group, kv_heads - 1)


def query_heads(run: Run, kv_head: int) -> str:
    """The query heads that share a KV head, such as ``3–5``."""
    group = group_of(run.trace.query_heads, run.trace.kv_heads)
    first, last = kv_head * group, (kv_head + 1) * group - 1
    return str(first) if first == last else f"{first}–{last}"


def headline(run: Run, layer: int, head: int) -> str:
    """How many tokens are held after the last step, and why."""
    trace, last = run.trace, run.trace.tokens - 1
    held = trace.kept(layer, head, last)
    start = f"After token {last + run.count_from}, layer {layer}, KV head {head} still holds"
    if len(held) == trace.tokens:
        return f"{start} {'its only token' if last == 0 else f'all {trace.tokens} tokens'}: nothing has been evicted."
    roles = Counter(trace.setup.policy.role_of(int(position), last, trace.prompt_tokens) for position in held)
    why = joined([role_words(role, count) for role, count in roles.items()])
    return f"{start} {len(held)} of {trace.tokens} tokens: {why} (policy A: {setup_words(trace.setup)})."


def role_words(role: str, count: int) -> str:
    """``4 sinks``, ``the 60 latest``."""
    if role == "recent":
        return "the latest one" if count == 1 else f"the {count} latest"
    if role == "window":
        return f"{count} of the observation window"
    if role == "other":
        return f"{count} that the policy kept"
    return plural(count, {"heavy": "heavy hitter"}.get(role, role))


def roles(run: Run) -> Codes | None:
    """(T, T) role codes of the policy, row = step; None when it has one role for all, which needs no colour."""
    return None if set(np.unique(run.roles)) <= {0, theme.OTHER_CODE} else run.roles


def steps_table(run: Run, layer: int, head: int) -> str:
    """Every step of a short text as the papers write it: the cache before and after, who left, which slot was used."""
    policy, first = run.trace.setup.policy, run.count_from
    budget = policy.size if policy.is_ring else None
    lines = [
        "| token read | cache before → after | evicted |" + (f" slot = token mod {budget} |" if budget else ""),
        "|--:|:--|--:|",
    ]
    lines[1] += "--:|" if budget else ""
    before: list[int] = []
    for step in range(run.trace.tokens):
        after = (run.trace.kept(layer, head, step) + first).tolist()
        left = ", ".join(str(token) for token in before if token not in after) or "–"
        slot = f" {(step + first) % budget} |" if budget else ""
        lines.append(f"| {step + first} | {listed(before)} → {listed(after)} | {left} |{slot}")
        before = after
    return "\n".join(lines)


def lifetimes_figure(run: Run, layer: int, head: int, side: theme.Side, title: str) -> Drawing:
    """Which token is in the cache at which step, with the lifetimes in all KV heads of the layer behind it."""
    return drawn(
        lifetimes,
        run.trace.evicted_at[layer],
        run.labels,
        head=head,
        role_of=roles(run),
        side=side,
        count_from=run.count_from,
        prompt_tokens=run.trace.prompt_tokens,
        title=title,
    )


def held_figure(run: Run, lines: Sequence[Series], unit: Literal["entries", "bytes"], title: str) -> Drawing:
    """What the cache holds after each step of the text of ``run``."""
    return drawn(
        entries_over_time,
        lines,
        unit,
        prompt_tokens=run.trace.prompt_tokens,
        count_from=run.count_from,
        labels=run.labels,
        title=title,
    )


def ring_figure(run: Run, layer: int, head: int, side: theme.Side) -> Drawing:
    """The slots of a rolling buffer after the last token."""
    last, budget = run.trace.tokens - 1, run.trace.setup.policy.size or 1
    title = f"After the last token: slot = position mod {budget}"
    held = run.trace.kept(layer, head, last)
    return ring(held, budget, run.labels, last, side=side, count_from=run.count_from, title=title)
