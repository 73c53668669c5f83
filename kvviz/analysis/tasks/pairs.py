"""A list of names with numbers, one of them asked for."""

from __future__ import annotations

from collections.abc import Sequence

from kvviz.analysis.tasks.base import Encode, Prompt, Task, chance, digits, stretch
from kvviz.analysis.tasks.passkey import NAMES

LINES, SHOWN = 8, 2  # lines of the list; others looked up before the one that is asked for


class Pairs(Task):
    """Eight lines ``name: number``; the depth chooses the line. Two others are looked up before it, which shows a small
    model what is asked. Source: Liu et al., Lost in the Middle, 2023.
    """

    name = "pairs"
    title = "Pairs: one line of a list"
    least_tokens = 160

    asked_first = False

    def prompt(self, encode: Encode, filler: Sequence[int], tokens: int, depth: int, seed: int) -> Prompt:
        source = chance(self.name, tokens, depth, seed)
        names = source.sample(NAMES, LINES)
        gold = round((LINES - 1) * depth / 100)
        numbers = [digits(source, 4) for _ in names]
        lines = [encode(f"{name}: {number}\n") for name, number in zip(names, numbers, strict=True)]
        shown = source.sample([line for line in range(LINES) if line != gold], SHOWN)
        again = "".join(f"{names[line]}: {numbers[line]}\n" for line in shown)
        first = f"\n\nWhat is the phone number of {names[gold]}? Look for {names[gold]} below."
        head = encode(f"{first if self.asked_first else ''}\n\nPhone numbers:\n")
        tail = encode(f"\nThe same numbers, looked up again:\n{again}{names[gold]}:")
        answer = encode(f" {numbers[gold]}")
        room = tokens - sum(map(len, [head, tail, answer, *lines]))
        text = [*stretch(source, filler, room), *head]
        for line in lines[:gold]:
            text += line
        needle = range(len(text), len(text) + len(lines[gold]))
        for line in lines[gold:]:
            text += line
        before = len(text) + len(tail)
        ids = (*text, *tail, *answer)
        return Prompt(ids, tuple(range(before, len(ids))), tuple(needle), before)


class PairsAskedFirst(Pairs):
    """The same with the question before the list too, so that whoever reads the list knows what matters."""

    name = "pairs_asked_first"
    title = "Pairs: one line of a list, asked for before it"
    least_tokens = 180
    asked_first = True
