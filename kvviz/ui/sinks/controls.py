"""The Sinks page's own menu."""

from __future__ import annotations

import streamlit as st

from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.sinks.settings import SinksSettings

SINK_CHOICES = (1, 2, 4, 8)


def sinks_menu(view: View) -> int:
    """How many first tokens count as sinks: a few numbers, and the one a link brought."""
    choices = sorted({*SINK_CHOICES, view.of(SinksSettings).sinks})
    own = kept_setting(SinksSettings, "sinks")
    return st.segmented_control("First tokens that count as sinks", choices, help=meaning("sink"), **own, required=True)
