"""What is computed: a ``Setup`` (how the model remembers) and an ``Experiment`` (a setup on a text and a model).

Everything a page shows is a function of an Experiment, so an Experiment can be written into a URL and read back.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from kvviz import knobs
from kvviz.knobs import spell
from kvviz.models import DEFAULT_MODEL
from kvviz.patterns import Causal, Pattern, parse_pattern
from kvviz.policies import Policy, parse_policy
from kvviz.policies.full import Full
from kvviz.storage import Native, Storage, parse_storage
from kvviz.texts import DEFAULT_TEXT, MAX_UPLOAD_BYTES, PRESETS

POSITIONS = ("original", "slot")
SOFTMAXES = ("standard", "off_by_one")
LINK_TEXT_BYTES = 4096  # a longer text travels as its hash: URLs beyond a few kB are cut by mail programs
TOKENS_LIMIT = 8192


def one_of(kind: str, choices: tuple[str, ...]) -> Callable[[str], str]:
    """A parser that accepts exactly these words."""

    def parse_word(word: str) -> str:
        if word not in choices:
            raise ValueError(f"There is no {kind} {word!r}; {knobs.suggestion(word, choices)}")
        return word

    return parse_word


@dataclass(frozen=True)
class Setup:
    """The five independent choices: which tokens stay, what may be seen, which positions, how stored, which softmax."""

    policy: Policy = field(default_factory=Full)
    pattern: Pattern = field(default_factory=Causal)
    positions: str = "original"
    storage: Storage = field(default_factory=Native)
    softmax: str = "standard"

    def __post_init__(self) -> None:
        one_of("numbering of positions", POSITIONS)(self.positions)
        one_of("softmax", SOFTMAXES)(self.softmax)

    def words(self) -> dict[str, str]:
        """Each choice as spelled, in the order of the fields."""
        return {
            "policy": spell(self.policy),
            "pattern": spell(self.pattern),
            "positions": self.positions,
            "storage": spell(self.storage),
            "softmax": self.softmax,
        }

    def __str__(self) -> str:
        """The policy and whatever else differs from the ordinary, for labels: ``window:budget=8 · slot``."""
        plain = Setup().words()
        return " · ".join(w for name, w in self.words().items() if name == "policy" or w != plain[name])


SETUP_PARSERS: dict[str, Callable[[str], Any]] = {
    "policy": parse_policy,
    "pattern": parse_pattern,
    "positions": one_of("numbering of positions", POSITIONS),
    "storage": parse_storage,
    "softmax": one_of("softmax", SOFTMAXES),
}


def parse_setup(words: Mapping[str, str]) -> Setup:
    """The setup these words spell, choices left out being the ordinary ones; ValueError on the first bad word."""
    return Setup(**{name: SETUP_PARSERS[name](word) for name, word in words.items()})


@dataclass(frozen=True)
class Text:
    """A text and, when it is one of the presets, its name."""

    content: str
    preset: str | None = None

    @classmethod
    def of_preset(cls, name: str) -> Text:
        one_of("text", tuple(PRESETS))(name)
        return cls(PRESETS[name].text(), name)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content.encode()).hexdigest()

    @property
    def count_from(self) -> int:
        """The number of the first token on screen: 1 for the toy preset, as in the sources; else 0."""
        return PRESETS[self.preset].count_from if self.preset else 0

    def spell(self) -> str:
        """A preset's name, ``z:`` and the compressed text, or ``sha256:`` and the hash of a long one."""
        if self.preset:
            return self.preset
        packed = base64.urlsafe_b64encode(zlib.compress(self.content.encode(), 9)).decode().rstrip("=")
        return f"z:{packed}" if len(packed) <= LINK_TEXT_BYTES else f"sha256:{self.sha256}"


def parse_text(word: str, known: Mapping[str, str] | None = None) -> Text:
    """The text that ``word`` spells; ``known`` maps sha256 to the texts at hand. ValueError says what is missing."""
    kind, _, rest = word.partition(":")
    if kind == "z":
        return Text(unpack(rest))
    if kind == "sha256":
        if rest not in (known or {}):
            raise ValueError(
                f"This link is about a text too long to travel in it (sha256 {rest[:12]}…); "
                "paste or upload that text to see the same figures."
            )
        return Text((known or {})[rest])
    return Text.of_preset(word)


def unpack(packed: str) -> str:
    """Undo ``Text.spell``'s compression; a bomb or a damaged link becomes one sentence."""
    try:
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        decompressor = zlib.decompressobj()
        plain = decompressor.decompress(raw, MAX_UPLOAD_BYTES)
        if not decompressor.eof:
            raise ValueError("cut short, or longer than any text may be")
        return plain.decode()
    except (ValueError, zlib.error):
        raise ValueError("The text in this link is damaged; copy the whole link again, or paste the text.") from None


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


def number_parser(name: str, low: int, high: int) -> Callable[[str], int]:
    def parse_number(word: str) -> int:
        if not (word.isascii() and word.isdigit() and len(word) <= 18 and low <= int(word) <= high):
            raise ValueError(f"{name}={word!r} must be a whole number from {low} to {high}.")
        return int(word)

    return parse_number


def attempt(
    notes: list[str], values: dict[str, Any], name: str, parser: Callable[[str], Any], word: str, whose: str = ""
) -> None:
    """Put the parsed word into ``values``, or a sentence into ``notes``."""
    try:
        values[name] = parser(word)
    except ValueError as error:
        notes.append(f"{whose}{error} The default is used instead.")


def setup_query(setup: Setup, prefix: str = "") -> dict[str, str]:
    """URL parameters of a setup; the policy is always there, the other choices when they are not the ordinary ones."""
    plain = Setup().words()
    return {prefix + name: w for name, w in setup.words().items() if name == "policy" or w != plain[name]}


def setup_from_query(
    query: Mapping[str, str], notes: list[str], prefix: str = "", default: Setup | None = None
) -> Setup:
    """Undo ``setup_query``; a bad word falls back to the default and leaves a sentence in ``notes``."""
    values: dict[str, Any] = {}
    for name, parser in SETUP_PARSERS.items():
        if prefix + name in query:
            attempt(notes, values, name, parser, query[prefix + name], "B: " if prefix else "")
    return replace(default or Setup(), **values)
