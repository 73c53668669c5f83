"""Whose word counts when a page runs: the address that the browser sent, or the settings that this session holds.

The URL is written by hand, because Streamlit's own binding pushes several history entries a page change and Back then
resets everything. So there are three copies of the settings (address, session, the view drawn), and this is the one
place that decides between them. Nothing here reads or writes any of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto

Query = Mapping[str, str]
BY_HASH = "sha256:"  # how a link names a text that is too long for it


class Action(Enum):
    """What becomes of the settings before the widgets are drawn."""

    ADOPT = auto()  # every setting as the address says; what it leaves out is ordinary again
    RESTORE = auto()  # this page's widgets are new to Streamlit: give them the session's settings
    KEEP = auto()


@dataclass(frozen=True)
class Situation:
    """What is known when a page begins to run."""

    query: Query  # what the browser sent
    written: Query | None = None  # what this session's last run left in the address bar; None = a new session
    is_other_page: bool = False  # than that of the last run
    is_changed_here: bool = False  # a widget or a button made it run
    known_texts: Collection[str] = ()  # hashes of the long texts at hand


@dataclass(frozen=True)
class Decision:
    """What to do, what counts as written from now on, and the word of a text that has to be asked for."""

    action: Action
    written: Query
    missing_text: str = ""


def reconcile(now: Situation) -> Decision:
    """A URL that this session did not write itself (a link, Back, Forward) counts; otherwise the session does."""
    if now.written is None or is_from_elsewhere(now, now.written):
        return Decision(Action.ADOPT, now.query, missing_text(now))
    return Decision(Action.RESTORE if now.is_other_page else Action.KEEP, now.written)


def is_from_elsewhere(now: Situation, written: Query) -> bool:
    """Whether the address says something, and something that this session has not said."""
    if now.is_changed_here:
        return False  # then the address may simply be older than our last one
    if now.is_other_page and not now.query:
        return False  # a bare address on another page says nothing; on the same page it is Back to the first figure
    return now.query != written


def missing_text(now: Situation) -> str:
    """The text's word in the link, where it is the hash of a text that nobody has brought yet."""
    word = now.query.get("text", "")
    is_missing = word.startswith(BY_HASH) and word.removeprefix(BY_HASH) not in now.known_texts
    return word if is_missing else ""


def address_of(words: Query, shown: Query, *, is_ordinary: bool, missing_text: str = "") -> Query:
    """What the address bar is to hold once the page's settings are ``words``; ``shown`` is what it holds.

    A bare address stays bare while everything is ordinary, and a text that is still asked for goes on being named.
    """
    if is_ordinary and not shown:
        return shown
    return {**words, "text": missing_text} if missing_text else words
