"""Spelling: how a choice such as ``streaming:budget=256,sinks=4`` becomes text and back.

One spelling serves the command line, the URL and the labels, and ``parse(spell(x)) == x`` for every value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from kvviz.knobs.fields import Choice, spell_value, suggestion

C = TypeVar("C", bound="Choice")


def spell(choice: Choice) -> str:
    """``name:knob=value,knob=value`` with every knob written out, so that a later default cannot change a link."""
    knobs = [f"{f.name}={spell_value(getattr(choice, f.name))}" for f in dataclasses.fields(choice)]
    return choice.name() + (":" + ",".join(knobs) if knobs else "")


def parse(text: str, registry: Mapping[str, type[C]]) -> C:
    """The choice that ``text`` spells; knobs left out keep their defaults.

    Raises ValueError naming the offending word, the choices and the likely one.
    """
    name, _, rest = text.strip().partition(":")
    cls = pick(name.strip(), registry)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    values: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in rest.split(","))):
        key, equals, word = (s.strip() for s in part.partition("="))
        if key not in fields:
            raise ValueError(f"{name} has no knob {key!r}; " + suggestion(key, fields))
        if not equals or key in values:
            raise ValueError(f"{name}: write each knob once, as knob=value; got {text!r}.")
        values[key] = parse_value(name, fields[key], word)
    return cls(**values)


def parse_value(name: str, field: dataclasses.Field[Any], word: str) -> Any:
    if "choices" in field.metadata:
        return word
    if isinstance(field.default, tuple):
        return tuple(whole(name, field, part) for part in filter(None, word.split("/")))
    number = whole(name, field, word)
    return bool(number) if isinstance(field.default, bool) and number in (0, 1) else number


def whole(name: str, field: dataclasses.Field[Any], word: str) -> int:
    low, high = field.metadata["low"], field.metadata["high"]
    # int() also takes "1_0", "+4" and other alphabets' digits, which would not spell back the same
    digits = word.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise ValueError(f"{name}: {field.name}={word!r} must be a whole number from {low} to {high}.")
    return int(word)


def pick(name: str, registry: Mapping[str, type[C]]) -> type[C]:
    """The class called ``name``, or a ValueError that lists what exists and what was probably meant."""
    if name not in registry:
        kind = next(iter(registry.values())).kind
        raise ValueError(f"There is no {kind} {name!r}; " + suggestion(name, registry))
    return registry[name]


def describe_knobs(cls: type[Choice]) -> list[dict[str, Any]]:
    """Name, default, range and label of every knob; sliders and documentation are made from it."""
    plain = cls()
    shown = ("low", "high", "label", "choices")
    return [
        {"name": f.name, "default": getattr(plain, f.name), **{k: f.metadata[k] for k in shown if k in f.metadata}}
        for f in dataclasses.fields(cls)
    ]
