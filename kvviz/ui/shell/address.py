"""The address bar: followed when a page begins to run, written when its settings are known.

Which of address and session counts is decided in ``reconcile``; here they are read and written.
"""

from __future__ import annotations

import streamlit as st

from kvviz.ui.shell import runs
from kvviz.ui.shell.reconcile import Action, Situation, address_of, reconcile
from kvviz.ui.shell.settings import PASTE
from kvviz.ui.shell.state import View, adopt, is_ordinary, setting, view_from_query


def take_url(page: str) -> None:
    """Follow the page's URL or keep the settings; sentences about bad values are kept for the page."""
    session = st.session_state
    decision = reconcile(situation(page))
    session.setdefault("settings", {})
    session.setdefault("good", {})
    session.update({"page": page, "written": decision.written})
    if decision.action is Action.ADOPT:
        view, notes = view_from_query(decision.written)
        adopt(view)
        ask_for_text(decision.missing_text, notes)
        session["link_notes"] = notes
    elif decision.action is Action.RESTORE:
        session.update(session["settings"])


def situation(page: str) -> Situation:
    """What the browser sent, and what this session knows."""
    session = st.session_state
    return Situation(
        query=dict(st.query_params),
        written=session.get("written"),
        is_other_page=session.get("page") != page,
        is_changed_here=was_changed_here(),
        known_texts=runs.known_texts,
    )


def was_changed_here() -> bool:
    """Whether this run comes from a widget, or from a button that set the widgets."""
    was_chosen = st.session_state.pop("chosen", False)
    settings = st.session_state.get("settings", {})
    return was_chosen or any(
        key in st.session_state and st.session_state[key] != value for key, value in settings.items()
    )


def ask_for_text(word: str, notes: list[str]) -> None:
    """Where a link's text is known by its hash alone, open the field to paste it, which goes on asking."""
    session = st.session_state
    session.update({"asked_word": word, "asked": ""})
    if word:
        session["asked"] = next(note for note in notes if "paste or upload" in note)
        notes.remove(session["asked"])  # the field says it
        session["s.text"] = session["settings"]["s.text"] = PASTE
        session["s.paste"] = session["settings"]["s.paste"] = ""


def write_url(view: View) -> None:
    """Put the view into the address bar, which makes one history entry: Back undoes one change."""
    shown = dict(st.query_params)
    is_unanswered = setting("s.text", "") == PASTE and not setting("s.paste", "")
    missing = st.session_state.get("asked_word", "") if is_unanswered else ""
    address = address_of(view.words(), shown, is_ordinary=is_ordinary(view), missing_text=missing)
    if address != shown:
        st.query_params.from_dict(address)
    st.session_state["written"] = address
