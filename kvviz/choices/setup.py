"""A ``Setup``: the five independent choices that say how the model remembers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kvviz.choices.patterns import PATTERNS, Causal, Pattern, parse_pattern
from kvviz.choices.storage import STORAGES, Native, Storage, parse_storage
from kvviz.choices.words import attempt, one_of
from kvviz.knobs import spell, suggestion
from kvviz.policies import Policy, parse_policy
from kvviz.policies.full import Full

POSITIONS = ("original", "slot")
SOFTMAXES = ("standard", "off_by_one")


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


def spelled(setup: Setup) -> str:
    """In one line without any blanks but between its choices: ``streaming:budget=256,sinks=4 slot``."""
    return str(setup).replace(" · ", " ")


def read_setup(line: str) -> Setup:
    """Undo ``spelled`` or ``str``: the policy first, then whatever else is not ordinary; ValueError in one sentence."""
    first, *others = re.sub(r"\s*([,=:])\s*", r"\1", line.replace("·", " ")).split() or [""]
    words = {"policy": first}
    for word in others:
        kind = kind_of(word)
        if kind in words:
            raise ValueError(f"{line.strip()!r} names two choices of {kind}; write one.")
        words[kind] = word
    return parse_setup(words)


def kind_of(word: str) -> str:
    """Which of the choices beside the policy a word is."""
    choices = {"pattern": PATTERNS, "positions": POSITIONS, "storage": STORAGES, "softmax": SOFTMAXES}
    name = word.partition(":")[0]
    for kind, names in choices.items():
        if name in names:
            return kind
    known = [name for names in choices.values() for name in names]
    raise ValueError(f"There is no pattern, positions, storage or softmax {name!r}; {suggestion(name, known)}")


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
