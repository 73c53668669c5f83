"""A text that is compressed once at its end, then two questions about different places of it."""

from __future__ import annotations

from collections.abc import Sequence

from kvviz.analysis.tasks.base import Encode, Prompt, Task, chance, digits, placed, stretch
from kvviz.analysis.tasks.passkey import NAMES, QUESTION

# said twice, for two numbers are much for a small model
NEEDLE = (
    "\n\nImportant: the secret number of {name} is {number}. Remember: the secret number of {name} is {number}.\n\n"
)


class Questions(Task):
    """Two numbers at mirrored depths; the prompt ends before either question is known, as in SCBench.

    Source: Li et al., SCBench: A KV Cache-Centric Analysis of Long-Context Methods, 2024, shortened.
    """

    name = "questions"
    title = "Two questions after the cache is cut"
    least_tokens = 220

    def prompt(self, encode: Encode, filler: Sequence[int], tokens: int, depth: int, seed: int) -> Prompt:
        source = chance(self.name, tokens, depth, seed)
        names = source.sample(NAMES, 2)
        numbers = [digits(source, 4) for _ in names]
        needles = [encode(NEEDLE.format(name=n, number=k)) for n, k in zip(names, numbers, strict=True)]
        asked = [encode(QUESTION.format(name=name)) for name in names]
        given = [encode(f" {number}") for number in numbers]
        room = tokens - sum(map(len, [*needles, *asked, *given]))
        near, far = sorted((float(depth), 100.0 - depth))
        order = (0, 1) if depth <= 50 else (1, 0)
        text, spans = placed([needles[i] for i in order], stretch(source, filler, room), (near, far))
        answers: list[int] = []
        ids = list(text)
        for question, answer in zip(asked, given, strict=True):
            ids += question
            answers += range(len(ids), len(ids) + len(answer))
            ids += answer
        return Prompt(tuple(ids), tuple(answers), tuple(i for span in spans for i in span), len(text))
