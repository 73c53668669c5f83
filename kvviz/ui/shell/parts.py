"""The supporting figures of a page: one group of them is open, the others are not computed."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from kvviz.choices.words import one_of
from kvviz.ui.shell.settings import PageSettings, linked
from kvviz.ui.shell.state import kept_setting


def part_setting(word: str, titles: Mapping[str, str]) -> str:
    """The field of a page's settings that says which group is open; it is called ``part``."""
    first: str = linked(word, next(iter(titles)), one_of("part of the page", tuple(titles)))
    return first


def part_menu(page: type[PageSettings], titles: Mapping[str, str]) -> str:
    """A menu of the groups; returns the open one."""
    looks = {"format_func": titles.__getitem__, "required": True, **kept_setting(page, "part")}
    return str(st.segmented_control("Look closer", list(titles), **looks))
