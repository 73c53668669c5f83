"""How long the pages about reuse take to answer: a broken condition, a draft tree, eight prompts over shared blocks."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.material import loaded, text_ids
from benchmarks.results import Figure, ratio_figure
from benchmarks.timing import seconds_of
from kvviz.analysis.drafts.cost import tree_cost
from kvviz.analysis.drafts.tree import tree_of
from kvviz.analysis.exactness.compared import uncached_logits
from kvviz.analysis.exactness.reuse import conditions, other_token, reused
from kvviz.analysis.sharing.serve import serve
from kvviz.models import tokens
from kvviz.ui.prefixes.run import Shared
from kvviz.ui.prefixes.view import pool_figure, tree_figure

TOKENS, PROMPT, PROMPTS, REPEATS = 256, 512, 8, 3


def figures() -> Iterator[Figure]:
    yield from broken_conditions()
    yield from draft_tree()
    yield from shared_prompts()


def broken_conditions() -> Iterator[Figure]:
    """From a changed setting to its line, the uncached answers being there already as they are on the page."""
    model, ids = loaded().model, text_ids(TOKENS)
    prefix = TOKENS // 2
    uncached = uncached_logits(model, ids, prefix)
    replaced = (4, other_token(ids.tolist(), 4))
    every = conditions(replaced=replaced, adapter=0.02, shift=1, window=32, number_format="bfloat16")
    for name, one in every.items():
        times = [seconds_of(lambda one=one: reused(model, ids, prefix, one, uncached)) for _ in range(REPEATS)]
        yield Figure(f"a broken condition, T = {TOKENS}, {name}", sorted(times)[REPEATS // 2], "s", "≤ 2.5")


def draft_tree() -> Iterator[Figure]:
    """One forward of four branches of four tokens and the root, by as many single steps."""
    ids = text_ids(TOKENS)
    branches = [[first, *range(20 + first, 23 + first)] for first in (1, 5, 9, 13)]
    cost = tree_cost(loaded().model, ids, tree_of(branches))
    yield Figure(f"one forward of a tree of {cost.rows} rows, by {cost.rows} single steps", cost.ratio, "×", "≤ 1")
    yield Figure("the same, by one single step", cost.steps_paid, "×")


def shared_prompts() -> Iterator[Figure]:
    """Prompts of 512 tokens that differ in their last 32."""
    model, tokenizer, ids = loaded().model, loaded().tokenizer, text_ids(PROMPT + PROMPTS * 32).tolist()
    start = ids[: PROMPT - 32]
    prompts = tuple((*start, *ids[PROMPT + 32 * place : PROMPT + 32 * (place + 1)]) for place in range(PROMPTS))
    found = serve(model, prompts)
    labels = tuple(tuple(tokens.labels(tokenizer, list(one))) for one in prompts)
    shared = Shared(found, prompts, labels, labels)
    drawing = seconds_of(lambda: (tree_figure(shared), pool_figure(shared, len(found.steps) - 1)))
    yield Figure(f"{PROMPTS} prompts of {PROMPT} tokens: drawing after the run", drawing, "s", "≤ 1")
    own, fresh = [one.seconds for one in found.prompts[1:]], [one.fresh_seconds for one in found.prompts[1:]]
    yield ratio_figure(f"reading a prompt of {PROMPT} over {PROMPT - 32} shared tokens, by a fresh run", own, fresh)
