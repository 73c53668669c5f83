"""A long stream, the cache never reset: no question, only how hard its tokens are at each depth."""

from __future__ import annotations

from collections.abc import Sequence

from kvviz.analysis.tasks.base import Encode, Prompt, Task, chance, stretch

ASKED = 64


class Stream(Task):
    """The mean loss of 64 tokens at each depth. Source: Xiao et al., StreamingLLM, 2023."""

    name = "stream"
    title = "Stream: loss along a long text"
    least_tokens = 2 * ASKED
    is_scored = False

    def prompt(self, encode: Encode, filler: Sequence[int], tokens: int, depth: int, seed: int) -> Prompt:
        ids = stretch(chance(self.name, tokens, seed), filler, tokens)  # the same text for every depth
        first = 1 + round((tokens - 1 - ASKED) * depth / 100)
        return Prompt(tuple(ids), tuple(range(first, first + ASKED)), (), max(1, tokens // 2))
