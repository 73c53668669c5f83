"""One number in a long text, asked for at its end."""

from __future__ import annotations

from collections.abc import Sequence

from kvviz.analysis.tasks.base import Encode, Prompt, Task, chance, digits, placed, stretch

NEEDLE = "\n\nImportant: the secret number of {name} is {number}.\n\n"
QUESTION = "\n\nQuestion: What is the secret number of {name}?\nAnswer: The secret number of {name} is"
NAMES = ("Anna", "Boris", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Irene", "Jacob", "Karen", "Louis")


class Passkey(Task):
    """A sentence with a five-digit number. Source: Mohtashami and Jaggi, Landmark Attention, 2023."""

    name = "passkey"
    title = "Pass key: one number in a long text"
    least_tokens = 80
    keys = 1
    length = 5  # of the number

    def prompt(self, encode: Encode, filler: Sequence[int], tokens: int, depth: int, seed: int) -> Prompt:
        source = chance(self.name, tokens, depth, seed)
        names = source.sample(NAMES, self.keys)
        numbers = [digits(source, self.length) for _ in names]
        needles = [encode(NEEDLE.format(name=n, number=k)) for n, k in zip(names, numbers, strict=True)]
        question, answer = encode(QUESTION.format(name=names[0])), encode(f" {numbers[0]}")
        room = tokens - sum(map(len, needles)) - len(question) - len(answer)
        depths = [float(depth), *(source.uniform(0, 100) for _ in needles[1:])]
        order = sorted(range(len(needles)), key=depths.__getitem__)
        text, spans = placed([needles[i] for i in order], stretch(source, filler, room), [depths[i] for i in order])
        before = len(text) + len(question)
        return Prompt(
            ids=(*text, *question, *answer),
            answers=tuple(range(before, before + len(answer))),
            needle=tuple(spans[order.index(0)]),
            prompt_tokens=before,
        )


class Multikey(Passkey):
    """Four such sentences with different names. Source: Hsieh et al., RULER, 2024, shortened."""

    name = "multikey"
    title = "Four keys: one of four numbers"
    least_tokens = 160
    keys = 4
    length = 4  # of five digits SmolLM2 itself copies too few rightly
