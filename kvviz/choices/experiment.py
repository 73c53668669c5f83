"""An ``Experiment``: a setup on a text and a model, which can be written into a URL and read back.

Everything a page shows is a function of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kvviz.choices.linked_text import Text, parse_text
from kvviz.choices.setup import Setup, setup_from_query, setup_query
from kvviz.choices.texts import DEFAULT_TEXT
from kvviz.choices.words import attempt, number_parser, one_of
from kvviz.models import DEFAULT_MODEL

TOKENS_LIMIT = 8192


@dataclass(frozen=True)
class Experiment:
    """A setup on a text and a model; ``dtype`` None = what the device prefers, ``prompt_tokens`` None = half."""

    setup: Setup = field(default_factory=Setup)
    text: Text = field(default_factory=lambda: Text.of_preset(DEFAULT_TEXT))
    tokens: int = 256
    prompt_tokens: int | None = None
    model: str = DEFAULT_MODEL
    dtype: str | None = None
    generate_tokens: int = 0
    seed: int = 0

    def query(self) -> dict[str, str]:
        """The experiment as URL parameters; choices that are the ordinary ones are left out."""
        plain = Experiment()
        numbers = {name: getattr(self, name) for name in NUMBER_RANGES if getattr(self, name) != getattr(plain, name)}
        return {
            **setup_query(self.setup),
            "text": self.text.spell(),
            "tokens": str(self.tokens),
            **{name: str(number) for name, number in numbers.items()},
            **({"model": self.model} if self.model != plain.model else {}),
            **({"dtype": self.dtype} if self.dtype else {}),
        }

    @classmethod
    def from_query(
        cls,
        query: Mapping[str, str],
        known_texts: Mapping[str, str] | None = None,
        default: Experiment | None = None,
    ) -> tuple[Experiment, list[str]]:
        """The experiment a URL asks for, and one sentence for each value that had to fall back to its default."""
        default = default or cls()
        notes: list[str] = []
        values: dict[str, Any] = {"setup": setup_from_query(query, notes, default=default.setup)}
        parsers: dict[str, Callable[[str], Any]] = {
            "text": lambda word: parse_text(word, known_texts),
            "model": str,
            "dtype": one_of("dtype", DTYPES),
            **{name: number_parser(name, *limits) for name, limits in NUMBER_RANGES.items()},
        }
        for name, parser in parsers.items():
            if name in query:
                attempt(notes, values, name, parser, query[name])
        return replace(default, **values), notes


DTYPES = ("float32", "bfloat16", "float16", "float64")
NUMBER_RANGES = {
    "tokens": (1, TOKENS_LIMIT),
    "prompt_tokens": (1, TOKENS_LIMIT),
    "generate_tokens": (0, TOKENS_LIMIT),
    "seed": (0, 2**31 - 1),
}
