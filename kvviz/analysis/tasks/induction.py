"""Random tokens, and the same once more: who remembers the first half knows the second."""

from __future__ import annotations

from collections.abc import Sequence

from kvviz.analysis.tasks.base import Encode, Prompt, Task, chance

ASKED = 32  # tokens of the second half that a cell asks for
WARM = 8  # at its beginning it is not known yet that it repeats


class Induction(Task):
    """r + r with random tokens r; the depth says which 32 of r are asked for, and half of them are enough: some random
    tokens are never the likeliest.

    Source: Olsson et al., In-context Learning and Induction Heads, 2022.
    """

    name = "induction"
    title = "Induction: random tokens, repeated"
    least_tokens = 2 * (ASKED + WARM)
    enough = 0.5

    def prompt(self, encode: Encode, filler: Sequence[int], tokens: int, depth: int, seed: int) -> Prompt:
        half = tokens // 2
        known = sorted(set(filler))
        # the same text for every depth
        source = chance(self.name, tokens, seed)
        text = [source.choice(known) for _ in range(half)]
        first = WARM + round((half - WARM - ASKED) * depth / 100)
        asked = range(first, first + ASKED)
        spare = tokens - 2 * half  # an odd length begins with one more token
        ids = (*text[:spare], *text, *text)
        return Prompt(ids, tuple(spare + half + i for i in asked), tuple(spare + i for i in asked), spare + half)
