"""The settings of a page: plain words in a URL, widget values in the session, and one View made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import streamlit as st

from kvviz.choices.experiment import TOKENS_LIMIT, Experiment
from kvviz.choices.setup import SETUP_PARSERS, Setup, setup_from_query, setup_query
from kvviz.choices.words import number_parser
from kvviz.knobs import Choice, spell_value
from kvviz.models import DEFAULT_MODEL, ModelError, check_name
from kvviz.policies.streaming import Streaming
from kvviz.ui.shell import runs
from kvviz.ui.shell.settings import (
    PASTE,
    PageSettings,
    S,
    link_of,
    linked,
    links,
    ordinary,
    parsed,
    settings_of_pages,
    words_of,
)

LAYER, HEAD = 14, 3  # where SmolLM2 shows a plain sink, some locality and a few heavy tokens
MOST_PLACES = 511  # the highest layer or head a link may name, whatever the model


@dataclass(frozen=True)
class View:
    """Everything a page depends on: the experiment under A, the setup B beside it, where one looks, and what the pages
    have of their own."""

    experiment: Experiment = field(default_factory=lambda: Experiment(Setup(Streaming(budget=64, sinks=4))))
    versus: Setup = field(default_factory=Setup)
    layer: int = linked("layer", LAYER, number_parser("layer", 0, MOST_PLACES), always=True)
    head: int = linked("head", HEAD, number_parser("head", 0, MOST_PLACES), always=True)  # a query head
    # position of the query whose weights are shown; None = the last one
    query: int | None = linked("query", None, number_parser("query", 0, TOKENS_LIMIT), always=True)
    own: tuple[PageSettings, ...] = field(default_factory=ordinary)  # one for each page that has settings

    def of(self, page: type[S]) -> S:
        """The settings of one page."""
        return next((own for own in self.own if isinstance(own, page)), page())

    def words(self) -> dict[str, str]:
        """All of it as URL parameters."""
        words = {**self.experiment.query(), **setup_query(self.versus, "b_"), **words_of(self)}
        for own in self.own:
            words |= own.words()
        return words


def view_from_query(query: Mapping[str, str]) -> tuple[View, list[str]]:
    """The view a URL asks for, and a sentence for every value that fell back to its default."""
    experiment, notes = Experiment.from_query(query, runs.known_texts, View().experiment)
    try:
        check_name(experiment.model)
    except ModelError as error:
        notes.append(f"{error} The default is used instead.")
        experiment = replace(experiment, model=DEFAULT_MODEL)
    if note := runs.dtype_note(experiment.dtype):
        notes.append(note)
    looks = parsed(View, query, notes)
    own = tuple(page(**parsed(page, query, notes)) for page in settings_of_pages())
    return View(replace(experiment, dtype=None), setup_from_query(query, notes, "b_"), **looks, own=own), notes


def is_ordinary(view: View) -> bool:
    """Whether it is what a bare address shows."""
    return replace(view, experiment=replace(view.experiment, dtype=None)) == View()


def adopt(view: View) -> None:
    """Set every widget to what the view says; must run before the widgets are drawn, or in a callback."""
    values = widget_values(view)
    st.session_state.update({"settings": {**st.session_state.get("settings", {}), **values}, **values})


def widget_values(view: View) -> dict[str, Any]:
    """The value of every widget, by its key."""
    experiment = view.experiment
    values: dict[str, Any] = {
        "s.text": experiment.text.preset or PASTE,
        "s.tokens": experiment.tokens,
        "s.prompt": experiment.prompt_tokens,
        "s.seed": experiment.seed,
        "s.generate": experiment.generate_tokens,
        "s.model": experiment.model,
        **{link.word: getattr(part, link.name) for part in (view, *view.own) for link in links(part)},
        **({} if experiment.text.preset else {"s.paste": experiment.text.content}),
    }
    for side, setup in (("a", experiment.setup), ("b", view.versus)):
        for kind in SETUP_PARSERS:
            values |= choice_values(side, kind, getattr(setup, kind))
    return values


def choice_values(side: str, kind: str, chosen: Choice | str) -> dict[str, Any]:
    """The menu of one of the five choices, and its knobs where it has some."""
    if isinstance(chosen, str):
        return {f"{side}.{kind}": chosen}
    knobs = {knob_key(side, kind, f.name): shown(getattr(chosen, f.name)) for f in fields(chosen)}
    return {f"{side}.{kind}": chosen.name(), **knobs}


def shown(value: Any) -> Any:
    """A knob's value as its widget holds it: a list is a line of text."""
    return spell_value(value) if isinstance(value, tuple) else value


def knob_key(side: str, kind: str, knob: str) -> str:
    """Policies share a knob of one name, so that changing the policy keeps the budget."""
    return f"{side}.{kind}.{knob}"


def setting(key: str, default: Any) -> Any:
    """The value of a widget, whether it is drawn now or not."""
    if key in st.session_state:
        st.session_state["settings"][key] = st.session_state[key]
    return st.session_state["settings"].get(key, default)


def kept(key: str, default: Any) -> dict[str, Any]:
    """Arguments for a widget whose value must outlive it while it is not drawn; it comes back from the settings."""
    if key not in st.session_state:
        st.session_state[key] = st.session_state["settings"].get(key, default)
    return {"key": key, "persist_state": "session"}


def kept_setting(page: type[PageSettings], name: str) -> dict[str, Any]:
    """``kept`` for a page's own setting, by the name of its field."""
    link = link_of(page, name)
    return kept(link.word, link.default)
