"""Closes the settings of a narrow screen when another page was chosen; draws nothing."""

from __future__ import annotations

from streamlit.components import v2

from kvviz.ui.components.assets import read

_closer = v2.component("kvviz_settings_closer", js=read("settings_closer.js"))


def settings_closer(page: str) -> None:
    """Say which page is shown; the browser remembers which one was."""
    _closer(key="settings_closer", data={"page": page}, height=1)
