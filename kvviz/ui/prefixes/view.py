"""What the Prefixes page says in words, and its figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from kvviz.choices.prompts import MOST_PROMPTS, PROMPT_SETS
from kvviz.figures import Drawing
from kvviz.figures.bars import bars
from kvviz.figures.prefixes import Branch, pool_grid, radix_tree
from kvviz.figures.series import series_lines
from kvviz.figures.theme import LINES
from kvviz.measures.prefixes import Edge, radix_edges
from kvviz.ui.prefixes.differences import breaks, chosen_break, reason, sides, title
from kvviz.ui.prefixes.run import Shared
from kvviz.ui.prefixes.settings import MOST_BLOCK, MOST_BLOCKS, PrefixesSettings
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.settings import PASTE
from kvviz.ui.shell.state import kept_setting
from kvviz.ui.shell.words import plain, plural, scientific

ROUNDING = 2e-4  # nats; what another order of the same sums may change in float32
MIB, BEGINNING = 2**20, 28  # characters of a branch that are written above it


def controls(chosen: PrefixesSettings) -> None:
    """Which prompts, and how they are cached."""
    titles = {name: one.title for name, one in PROMPT_SETS.items()} | {PASTE: "Paste prompts of your own"}
    columns = st.columns([3, 1, 1, 2], vertical_alignment="bottom")
    words = {"format_func": titles.__getitem__, **kept_setting(PrefixesSettings, "chosen")}
    columns[0].selectbox("Prompts", list(titles), **words)
    whole_number(columns[1], "Block (tokens)", "prefix_block", 16, 1, MOST_BLOCK)
    whole_number(columns[2], "Most blocks", "prefix_blocks", 0, 0, MOST_BLOCKS, help="0: as many as are needed")
    columns[3].toggle("Two answers to each", **kept_setting(PrefixesSettings, "forks"))
    if chosen.chosen == PASTE:
        label = f"Up to {MOST_PROMPTS} prompts, with a line of --- between them"
        st.text_area(label, height=200, **kept_setting(PrefixesSettings, "pasted"))


def headline(shared: Shared) -> str:
    """Where the first prompt that breaks does so; else how much was shared."""
    served, block = shared.sharing.prompts, shared.sharing.block
    if len(served) == 1:
        return f"One prompt of {plural(served[0].tokens, 'token')}: nothing to share it with. Give a second one."
    broken = next((one for one in breaks(shared) if one.position is not None), None)
    hits = sum(one.hit_tokens for one in served)
    if broken is None:
        begins = "No prompt differs from an earlier one before either ends"
        return f"{begins}: {hits} tokens in whole blocks of {block} were hits."
    mine, other = (shared.labels[place][broken.position or 0] for place in (broken.prompt, broken.other))
    own = served[broken.prompt]
    return (
        f"Prompt {broken.prompt + 1} shares {broken.shared} of {own.tokens} tokens with prompt {broken.other + 1} and "
        "breaks "
        f"at token {broken.position}, ‘{mine}’ against ‘{other}’; {plural(own.hit_tokens // block, 'block')} of "
        f"{block} "
        f"{'was a hit' if own.hit_tokens // block == 1 else 'were hits'}."
    )


def draw_break(shared: Shared, chosen: PrefixesSettings) -> None:
    """One prompt's break: a menu where there are several, both sides, and why."""
    one = chosen_break(shared, chosen.prompt)
    if one is None:
        return
    later = [place + 1 for place in range(1, len(shared.tokens))]
    if len(later) > 1:
        link = kept_setting(PrefixesSettings, "prompt")
        if st.session_state[link["key"]] not in later:
            st.session_state[link["key"]] = None
        name = f"Prompt, beside the earlier one it shares most with (shown: {one.prompt + 1})"
        st.segmented_control(name, later, format_func=lambda place: f"Prompt {place}", **link)
    st.markdown(f"**{plain(title(shared, one))}** {plain(reason(shared, one))}", help=meaning("hit", "block"))
    if written := sides(shared, one):
        st.html(written)


def tree_figure(shared: Shared) -> Drawing:
    edges = radix_edges(shared.tokens)
    branches = [branch(shared, edges, edge) for edge in edges]
    return drawn(radix_tree, branches, title="The prompts as a radix tree over tokens")


def branch(shared: Shared, edges: list[Edge], edge: Edge) -> Branch:
    """One edge of the tree with what is drawn of it."""
    first = edge.prompts[0]
    hit_end = max(shared.sharing.prompts[place].hit_tokens for place in edge.prompts)
    text = "".join(shared.labels[first][edge.start : min(edge.end, edge.start + BEGINNING)])
    ends = tuple(place + 1 for place in edge.prompts if len(shared.tokens[place]) == edge.end)
    before = None if edge.parent is None else edges[edge.parent].row
    shown = text if len(text) <= BEGINNING else f"{text[: BEGINNING - 1]}…"
    return Branch(edge.start, edge.end, edge.row, before, hit_end, len(edge.prompts) > 1, shown, ends)


def step_of(shared: Shared, chosen: int | None) -> int:
    """The step to show: the last one unless chosen."""
    last = len(shared.sharing.steps) - 1
    return last if chosen is None else min(chosen, last)


def step_words(shared: Shared, step: int) -> str:
    """What happened in a step, counted by kind."""
    one = shared.sharing.steps[step]
    kinds = [event.kind for event in one.events]
    done = {
        "hit": "taken from the cache",
        "allocate": "newly filled",
        "copy": "copied before writing",
        "evict": "evicted",
        "free": "freed",
    }
    parts = [f"{kinds.count(kind)} {words}" for kind, words in done.items() if kind in kinds]
    held = sum(1 for _, references, _ in one.blocks if references)
    return (
        f"Step {step} of {len(shared.sharing.steps) - 1}. {one.words}. Blocks: {', '.join(parts) or 'none touched'}. "
        f"Now {plural(len(one.blocks), 'block')}: {held} held by open prompts, {len(one.blocks) - held} only kept for "
        "later."
    )


def pool_figure(shared: Shared, step: int) -> Drawing:
    one = shared.sharing.steps[step]
    return drawn(pool_grid, one.blocks, shared.sharing.block, title=f"References of every block after step {step}")


def saved_words(shared: Shared) -> str:
    """Bytes and prefill work, as counted and as measured."""
    sharing = shared.sharing
    tokens, hits = sum(one.tokens for one in sharing.prompts), sum(one.hit_tokens for one in sharing.prompts)
    alone, own = sum(one.fresh_seconds for one in sharing.prompts), sum(one.seconds for one in sharing.prompts)
    return (
        f"Of {tokens:,} tokens {hits:,} were hits, so {tokens - hits:,} were computed: {hits / tokens:.0%} of the "
        "prefill "
        f"work is saved. Measured on this machine, reading took {own:.3g} s instead of {alone:.3g} s "
        f"({own / alone:.2g} "
        f"times). Keys and values take {sharing.bytes_shared / MIB:.3g} MiB instead of {sharing.bytes_alone / MIB:.3g} "
        "MiB."
    )


def saved_figure(shared: Shared) -> Drawing:
    """Seconds to the first answer, prompt by prompt."""
    names, values = [], []
    for place, one in enumerate(shared.sharing.prompts):
        names += [f"prompt {place + 1}, shared", f"prompt {place + 1}, fresh"]
        values += [one.seconds, one.fresh_seconds]
    return drawn(bars, names, values, unit="s", axis="time to read", title="Reading over shared blocks, and freshly")


def equal_words(shared: Shared) -> str:
    """The largest gap, and whether it counts as equal."""
    gap = shared.sharing.largest_gap
    told = (
        "Up to 2·10⁻⁴ is another order of the same sums in float32, for blocks of rows of another size; on tiny models "
        "in "
        "float64 both are equal to 10⁻⁹."
        if gap <= ROUNDING
        else "In float32 that is more than the 2·10⁻⁴ that another order of the same sums explains; half precision "
        "rounds a thousand times as coarsely."
    )
    return (
        "Every token that was computed over shared blocks is compared with a fresh run of the whole prompt: "
        f"log-probabilities differ by at most {scientific(gap)} nats. {told}"
    )


def gap_figure(shared: Shared) -> Drawing:
    """The gap of every computed token, a line a prompt."""
    longest = max(one.tokens for one in shared.sharing.prompts)
    lines = []
    for place, (one, colour) in enumerate(zip(shared.sharing.prompts, LINES, strict=False)):
        gaps = np.full(longest, np.nan)
        gaps[one.hit_tokens : one.tokens] = one.gaps
        lines.append((f"prompt {place + 1}", colour, gaps))
    looks: dict[str, Any] = {"y_title": "largest difference (nats)", "x_title": "token (position)", "from_zero": True}
    return drawn(series_lines, lines, **looks, title="Gap to a fresh run")
