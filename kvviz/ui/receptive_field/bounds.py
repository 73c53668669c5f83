"""The bounds of the reach in words: formulas with their numbers in them, and the calculator."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kvviz.choices.patterns import Layered, Pattern, Sliding
from kvviz.choices.setup import Setup
from kvviz.knobs import BUDGET_LIMIT
from kvviz.measures.reach import bound, rounded, window_bound
from kvviz.policies import Policy
from kvviz.ui.receptive_field.runs import Seen
from kvviz.ui.receptive_field.settings import MOST_DILATION, MOST_LAYERS, ReachSettings
from kvviz.ui.shell.settings import link_of
from kvviz.ui.shell.state import kept_setting
from kvviz.ui.shell.words import plural

FIELDS = (
    ("window w: keys a query sees", "window", BUDGET_LIMIT),
    ("layers L", "layers", MOST_LAYERS),
    ("dilation d", "dilation", MOST_DILATION),
)


def bound_words(setup: Setup, seen: Seen, depth: int) -> str:
    """The formula with the numbers in it, and how much of it the text allows."""
    formula = formula_words(setup, depth, seen.windows)
    reached, text = int(seen.reach[0].sum()), seen.reach.shape[1]
    if formula:
        most = f"Upper bound for A, in positions, its own included: {formula}."
        return f"{most} In this text: {reached} of {text} positions."
    return (
        "No formula bounds the reach of A, because the text decides which tokens it keeps; in this run it is exactly "
        f"{reached} of {text} positions."
    )


def formula_words(setup: Setup, depth: int, windows: Sequence[int | None]) -> str:
    """What bounds the reach of this setup, if anything does by its shape alone."""
    policy, pattern = setup.policy, setup.pattern
    if policy.recomputes:
        return f"{policy.size:,} positions through any number of layers, since every prediction computes them again"
    bounds = []  # each holds whatever the others do: nothing here lets a query see more
    if any(windows):
        own = Layered(windows=tuple(window or 0 for window in windows))
        bounds.append((bound(own, depth).formula, "by the model's own windows"))
    if not pattern.hides_nothing or (policy.size is None and not bounds):
        bounds.append((pattern_words(pattern, depth), "by the pattern"))
    if kept_near := policy_words(policy, depth, has_windows=any(windows)):
        bounds.append((kept_near, "by the policy"))
    if len(bounds) == 1:
        return bounds[0][0]
    return "; ".join(f"{formula} {source}" for formula, source in bounds)


def pattern_words(pattern: Pattern, depth: int) -> str:
    near = bound(pattern, depth).formula
    if isinstance(pattern, Sliding):
        return f"{near}; papers round to {rounded_words(pattern.window, depth)}"
    return near


def policy_words(policy: Policy, depth: int, has_windows: bool) -> str:
    """What a policy allows whose kept tokens are known from positions alone; nothing bounds the others."""
    ends = None if policy.size is None else policy.ends_held(policy.size)
    if ends is None:
        return ""
    sinks, recent = ends
    near = window_bound(recent, depth).formula
    if not sinks:
        return f"{near}; papers round to {rounded_words(recent, depth)}"
    # where the model's own windows lose the sinks, more of the latest stay
    return "" if has_windows else f"{near} by the window, plus the {plural(sinks, 'sink')} that every query sees"


def rounded_words(window: int, layers: int) -> str:
    return f"L · w = {layers} · {window:,} = {rounded(window, layers):,}"


def number(column: DeltaGenerator, label: str, name: str, most: int) -> int:
    """One of the calculator's fields; an empty one means what it shows in grey."""
    default = link_of(ReachSettings, name).default
    own = kept_setting(ReachSettings, name)
    value = column.number_input(label, 1, most, None, 1, placeholder=f"{default}", **own)
    return int(default if value is None else value)


def calculator() -> str:
    """Three numbers in, the formulas with them out."""
    window, layers, dilation = (
        number(column, label, name, most) for column, (label, name, most) in zip(st.columns(3), FIELDS, strict=True)
    )
    exact, wide = window_bound(window, layers, dilation), layers * window * dilation
    over = "" if dilation == 1 else f", over a span of L · w · d = {wide:,}"
    formula = "L · (w − 1) + 1" + ("" if dilation == 1 else " over a span of L · (w − 1) · d + 1")
    papers = f"{rounded_words(window, layers)}{over}"
    return f"**Exact:** {formula}: {exact.formula} positions. **Rounded, as in papers:** {papers}."
