"""One file a policy. A new file in this folder is found by itself; nothing else has to be edited.

May import knobs and text.
"""

from __future__ import annotations

import importlib
import pkgutil

from kvviz import knobs
from kvviz.policies import base
from kvviz.policies.base import Moment, Policy, Scored, View

__all__ = ["POLICIES", "Moment", "Policy", "Scored", "View", "parse_policy"]

# The order in which menus list them; policies not named here follow in alphabetical order.
FIRST = (
    "full",
    "window",
    "rolling",
    "streaming",
    "h2o",
    "attention_window",
    "tova",
    "snapkv",
    "pyramidkv",
    "knorm",
    "keydiff",
    "lagkv",
    "recompute",
)


def discover() -> dict[str, type[Policy]]:
    """Every Policy subclass of this folder by its name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    found = {cls.name(): cls for cls in subclasses(Policy) if is_of_this_folder(cls)}
    order = sorted(found, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return {name: found[name] for name in order}


def is_of_this_folder(cls: type[Policy]) -> bool:
    """Whether it is a policy of its own here, and not what policies are made from."""
    return cls.__module__.startswith(__name__) and cls.__module__ != base.__name__


def subclasses(cls: type[Policy]) -> list[type[Policy]]:
    """The subclasses of a class and theirs."""
    return [below for child in cls.__subclasses__() for below in (child, *subclasses(child))]


POLICIES: dict[str, type[Policy]] = discover()


def parse_policy(text: str) -> Policy:
    """``streaming:budget=256,sinks=4`` → the policy; ValueError with the choices otherwise."""
    return knobs.parse(text, POLICIES)
