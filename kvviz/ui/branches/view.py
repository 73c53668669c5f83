"""What the Branches page says in words, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from kvviz.figures import Drawing
from kvviz.figures.tree import Node, draft_tree
from kvviz.figures.tree_slots import accepted_bars, step_slots, tree_mask
from kvviz.text.signs import unique_labels
from kvviz.ui.branches.run import Drafted
from kvviz.ui.branches.settings import (
    DRAFTER_WORDS,
    MOST_DEPTH,
    MOST_LAYERS,
    MOST_NEW,
    MOST_WIDTH,
    BranchesSettings,
)
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.state import kept_setting
from kvviz.ui.shell.words import plural, scientific

if TYPE_CHECKING:
    from kvviz.analysis.drafts.cost import TreeCost
    from kvviz.analysis.drafts.speculation import Step

NOT_EXPLAINED = "that is more than another order of the same sums explains"
TAIL = 6  # cached tokens that are drawn beside a block


def controls(chosen: BranchesSettings) -> None:
    """Who drafts, how large a tree, how much is written, and which step is shown."""
    columns = st.columns([3, 1, 1, 1, 1])
    words = {"format_func": DRAFTER_WORDS.__getitem__, **kept_setting(BranchesSettings, "drafter")}
    columns[0].selectbox("Drafts come from", list(DRAFTER_WORDS), **words)
    whole_number(columns[1], "Branches", "draft_width", 4, 1, MOST_WIDTH)
    whole_number(columns[2], "Their length", "draft_depth", 4, 1, MOST_DEPTH)
    whole_number(columns[3], "New tokens", "draft_new", 32, 1, MOST_NEW)
    looks: dict[str, Any] = {"placeholder": "the best"}
    whole_number(columns[4], "Step shown", "draft_step", None, 0, MOST_NEW, **looks)
    if chosen.drafter == "layers":
        whole_number(st.columns(3)[0], "First layers that draft", "draft_layers", 24, 1, MOST_LAYERS)


def headline(drafted: Drafted) -> str:
    """How many drafted tokens were accepted and dropped, and whether anything differs from plain decoding."""
    found = drafted.found
    nodes = sum(len(step.tree) for step in found.steps)
    taken, steps = sum(found.accepted), plural(len(found.steps), "step")
    if not nodes:
        return f"Nothing was drafted in {steps}: no word of the text came before; draft with the first layers instead."
    dropped = nodes - taken
    return (
        f"Of {plural(nodes, 'drafted token')} {taken} {'was' if taken == 1 else 'were'} accepted in {steps}; "
        f"the slots of the other {dropped} were dropped; {equal_in_short(drafted)}."
    )


def equal_in_short(drafted: Drafted) -> str:
    """What is the same as in plain decoding; equal is only what is within the tolerance."""
    found = drafted.found
    if not found.is_equal:
        return "the text parts from plain decoding"
    if not found.is_exact:
        return "the text is that of plain decoding, but its numbers differ by more than rounding explains"
    return "the text and the cache equal plain decoding"


def names_of(drafted: Drafted, tokens: Sequence[int], first: int) -> list[str]:
    """Distinct labels of tokens, numbered from ``first``."""
    return unique_labels([drafted.labels[token] for token in tokens], first)


def tree_figure(drafted: Drafted, step: int, head: int) -> Drawing:
    """The tree of a step, with the weights of the deepest accepted row in one head."""
    one = drafted.found.steps[step]
    head = min(head, len(one.weights) - 1)
    deepest = one.kept[-1]
    weights = one.weights[head, deepest, 1:]
    nodes = tuple(
        Node(drafted.labels[token], parent, depth, place in one.accepted, float(weight))
        for place, (token, parent, depth, weight) in enumerate(
            zip(one.tree.tokens, one.tree.parents, one.tree.depths, weights, strict=True)
        )
    )
    reader = f"{label_of(drafted, one, deepest)} (layer {drafted.layer}, head {head})"
    added = drafted.labels[one.written[-1]]
    title = f"Draft tree of step {step}"
    return drawn(draft_tree, drafted.labels[one.root], nodes, added=added, reader=reader, title=title)


def label_of(drafted: Drafted, step: Step, row: int) -> str:
    token = step.root if row == 0 else step.tree.tokens[row - 1]
    return f"‘{drafted.labels[token]}’"


def range_words(drafted: Drafted, chosen: int | None) -> str:
    """Where the step asked for is not there; empty otherwise."""
    last = len(drafted.found.steps) - 1
    return f"There is no step {chosen}: the steps are 0–{last}. The last one is shown." if (chosen or 0) > last else ""


def step_words(drafted: Drafted, step: int) -> str:
    """What became of the tree."""
    one = drafted.found.steps[step]
    path = " ".join(drafted.labels[token] for token in one.written)
    start = f"Step {step}: after ‘{drafted.labels[one.root]}’ {plural(len(one.tree), 'token')} were drafted"
    if not len(one.tree):
        return f"{start}; the model writes ‘{path}’."
    return (
        f"{start} and verified in one forward of {len(one.tree) + 1} rows; {len(one.accepted)} accepted. Written: "
        f"‘{path}’. "
        f"Branches do not see each other: the weights between them add up to {scientific(hidden_weight(one))}."
    )


def hidden_weight(step: Step) -> float:
    """All weight between rows of different branches; exactly 0 where the mask is right."""
    hidden = ~step.tree.mask(0).numpy()
    return float(np.abs(step.weights[:, hidden]).sum())


def block_labels(drafted: Drafted, step: Step) -> tuple[list[str], int]:
    """The last cached tokens, the root and the nodes, distinct; and how many of them are cached."""
    before = drafted.before(step)
    tail = min(TAIL, len(before))
    cached = names_of(drafted, before[len(before) - tail :], len(before) - tail + drafted.count_from)
    places = [0, *step.tree.depths]
    rows = [
        f"{len(before) + depth + drafted.count_from} {drafted.labels[token]} ({place})"
        for place, (token, depth) in enumerate(zip((step.root, *step.tree.tokens), places, strict=True))
    ]
    return [*cached, *rows], tail


def mask_figure(drafted: Drafted, step: int) -> Drawing:
    one = drafted.found.steps[step]
    labels, tail = block_labels(drafted, one)
    return drawn(tree_mask, one.tree.mask(tail).numpy(), labels, tail, title=f"Tree mask of step {step}")


def slots_figure(drafted: Drafted, step: int) -> Drawing:
    one = drafted.found.steps[step]
    labels, tail = block_labels(drafted, one)
    return drawn(step_slots, labels, tail, one.kept, title=f"Slots of step {step}")


def lengths_figure(drafted: Drafted, step: int) -> Drawing:
    drafts = [len(one.tree) for one in drafted.found.steps]
    title = "Drafted and accepted tokens, step by step"
    return drawn(accepted_bars, drafts, drafted.found.accepted, step, title=title)


def length_words(drafted: Drafted) -> str:
    """How many tokens a step writes, and what was written."""
    found = drafted.found
    rate = len(found.token_ids) / len(found.steps)
    return (
        f"{plural(len(found.token_ids), 'token')} in {plural(len(found.steps), 'step')}: {rate:.3g} tokens a forward "
        "of "
        f"the model instead of 1. Written: “{drafted.text.strip()}”"
    )


def slot_words(drafted: Drafted, step: int) -> str:
    """Which slots stay."""
    one = drafted.found.steps[step]
    rows = len(one.tree) + 1
    return (
        f"The block adds {plural(rows, 'slot')} to {one.cached:,}; {len(one.kept)} stay, those of the accepted path, "
        "moved "
        f"together in its order, and {rows - len(one.kept)} are dropped. The token that the model adds is the next "
        "root: its "
        "key and value come with the next step."
    )


def equal_words(drafted: Drafted) -> str:
    """Both texts and both caches."""
    found = drafted.found
    text = (
        f"All {plural(len(found.token_ids), 'new token')} are those of plain greedy decoding"
        if found.is_equal
        else f"The texts part where plain decoding's two best choices lie {scientific(found.margin or 0.0)} nats apart"
    )
    return (
        f"{text}. The rows that wrote them differ by at most {scientific(found.largest_gap)} nats in log-probability "
        f"(allowed {scientific(found.allowed_gap)}), keys and values in the cache by {scientific(found.cache_gap)} of "
        f"their largest number (allowed {scientific(found.allowed_cache_gap)}): "
        f"{'a block of rows adds up in another order than single steps' if found.is_exact else NOT_EXPLAINED}. On tiny "
        "models in float64 both are equal to 10⁻⁹."
    )


def cost_words(cost: TreeCost, drafted: Drafted) -> str:
    """The ratio, and what a step must accept to pay."""
    mean = len(drafted.found.token_ids) / len(drafted.found.steps)
    pays = "pays" if mean > cost.steps_paid else "does not pay"
    return (
        f"One forward of {cost.rows} rows takes {1000 * cost.tree_seconds:.3g} ms, one single step "
        f"{1000 * cost.step_seconds:.3g} ms: the tree costs {cost.ratio:.2g} times as much as {cost.rows} single "
        "steps, or "
        f"as much as {cost.steps_paid:.2g} of them. This text writes {mean:.3g} tokens a step, drafting not counted, "
        "so here "
        f"the tree {pays}. Medians of five in turns, on this machine."
    )
