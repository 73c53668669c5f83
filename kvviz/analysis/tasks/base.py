"""What a quality task is: it makes prompts of a given length whose answer is known, the needle at a given depth."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

Encode = Callable[[str], "list[int]"]  # text → tokens, nothing added


@dataclass(frozen=True)
class Prompt:
    """A text that ends with the answer; what stands before is what the model may use for it.

    ``prompt_tokens`` is where the prompt ends for policies that act there. ``answers`` are the positions whose tokens
    must be predicted, ``needle`` those that hold what is asked for.
    """

    ids: tuple[int, ...]
    answers: tuple[int, ...]
    needle: tuple[int, ...]
    prompt_tokens: int


class Task:
    """One kind of question. Subclasses say what they ask and make prompts of exactly the length asked for."""

    name: ClassVar[str]
    title: ClassVar[str]
    least_tokens: ClassVar[int]  # shorter prompts leave the question no room
    is_scored: ClassVar[bool] = True  # whether there is an answer to find; a stream has losses alone
    enough: ClassVar[float] = 1.0  # share of the asked tokens that must be the likeliest

    def prompt(self, encode: Encode, filler: Sequence[int], tokens: int, depth: int, seed: int) -> Prompt:
        """A prompt of ``tokens`` tokens, answer included, the needle at ``depth`` percent of what surrounds it.

        The same task, tokens, depth and seed give the same prompt. ``filler`` are tokens to draw a stretch from.
        """
        raise NotImplementedError


def chance(*seeds: object) -> random.Random:
    """A generator of its own for these seeds, the same on every machine."""
    return random.Random("/".join(map(str, seeds)))


def digits(source: random.Random, count: int) -> str:
    return "".join(source.choice("0123456789") for _ in range(count))


def stretch(source: random.Random, filler: Sequence[int], count: int) -> list[int]:
    """``count`` tokens of the filler from a place drawn by chance; a short filler begins again."""
    start = source.randrange(max(1, len(filler) - count))
    found = list(filler[start : start + count])
    while len(found) < count:
        found += filler[: count - len(found)]
    return found


def placed(
    parts: Sequence[Sequence[int]], filler: Sequence[int], depths: Sequence[float]
) -> tuple[list[int], list[range]]:
    """The filler with the parts put in at these depths (percent, ascending), and where each part came to stand."""
    found: list[int] = []
    spans, used = [], 0
    for part, depth in zip(parts, depths, strict=True):
        end = round(len(filler) * depth / 100)
        found += filler[used:end]
        used = end
        spans.append(range(len(found), len(found) + len(part)))
        found += part
    return [*found, *filler[used:]], spans
