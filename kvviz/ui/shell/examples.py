"""The examples of a page: a row of chips under the headline that set the experiment, and what to watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from kvviz.choices.linked_text import Text
from kvviz.choices.setup import SETUP_PARSERS
from kvviz.choices.texts import DEFAULT_TEXT
from kvviz.ui.shell.settings import Example
from kvviz.ui.shell.state import View, adopt, view_from_query
from kvviz.ui.shell.words import plain

INVITATION = "Press an example: the figure below changes, and what to watch for stands here."


def draw_examples(view: View, examples: Sequence[Example]) -> None:
    """The chips, and below them what to watch in the one that is shown now."""
    if not examples:
        return
    with st.container(key="examples", horizontal=True, gap="xsmall"):
        for place, one in enumerate(examples):
            st.button(one.label, key=f"try.{place}", on_click=change_view, args=(view, one.change))
    st.caption(watch_words(view, examples))


def watch_words(view: View, examples: Sequence[Example]) -> str:
    """What to watch in the example that would change nothing any more."""
    shown = next((one for one in examples if is_shown(view, one)), None)
    return f"**{plain(shown.label)}.** {plain(shown.watch)}" if shown else INVITATION


def is_shown(view: View, example: Example) -> bool:
    """Whether to press it would change nothing; the number format is not a setting.

    Without the text, which is known by its name: to spell a long one takes a tenth of a second.
    """
    text = view.experiment.text
    if example.change.get("text", text.preset) != text.preset:
        return False
    light = replace(view, experiment=replace(view.experiment, text=Text.of_preset(DEFAULT_TEXT)))
    change = {name: word for name, word in example.change.items() if name != "text"}
    shown, wanted = ({**one.words(), "dtype": ""} for one in (light, changed(light, change)))
    return shown == wanted


def change_view(view: View, change: Mapping[str, str]) -> None:
    """Adopt the view with some of its URL parameters changed; None of the others is lost."""
    adopt(changed(view, change))
    st.session_state["chosen"] = True


def changed(view: View, change: Mapping[str, str]) -> View:
    """The view with some of its URL parameters changed."""
    query = {name: word for name, word in view.words().items() if name not in dropped_by(change)}
    return view_from_query({**query, **change})[0]


def dropped_by(change: Mapping[str, str]) -> set[str]:
    """A new policy on a side starts with that side's other choices as the ordinary ones."""
    sides = [name.removesuffix("policy") for name in change if name.endswith("policy")]
    return {side + kind for side in sides for kind in SETUP_PARSERS if kind != "policy"}
