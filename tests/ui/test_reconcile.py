"""Which copy of the settings counts, case by case; no browser and no session is needed to say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvviz.ui.shell.reconcile import Action, Decision, Query, Situation, address_of, reconcile

BARE: Query = {}
OLD, NOW = {"tokens": "64"}, {"tokens": "77"}
UNKNOWN, KNOWN = "sha256:" + "0" * 64, "sha256:" + "1" * 64
TEXTS = {KNOWN.removeprefix("sha256:")}
ADOPT, RESTORE, KEEP = Action.ADOPT, Action.RESTORE, Action.KEEP


def case(
    what: str, query: Query, written: Query | None, action: Action, missing_text: str = "", **more: Any
) -> tuple[str, Situation, Decision]:
    counts = query if action is ADOPT else written
    assert counts is not None
    return what, Situation(query, written, known_texts=TEXTS, **more), Decision(action, counts, missing_text)


OTHER, CHANGED = {"is_other_page": True}, {"is_changed_here": True}
CASES = [
    #     what happens                                  browser sent  session wrote  so
    case("a new session opens a link", NOW, None, ADOPT, **OTHER),
    case("a new session opens the bare page", BARE, None, ADOPT, **OTHER),
    case("a bare page is reloaded, which makes a new session", BARE, None, ADOPT, **OTHER),
    case("a page with settings in its address is reloaded", NOW, None, ADOPT, **OTHER),
    case("the page runs again by itself", NOW, NOW, KEEP),
    case("the bare page runs again by itself", BARE, BARE, KEEP),
    case("Back to an older link", OLD, NOW, ADOPT),
    case("Forward from the bare first figure", NOW, BARE, ADOPT),
    case("Back to the bare first figure", BARE, NOW, ADOPT),
    case("a widget is changed", NOW, NOW, KEEP, **CHANGED),
    case("a widget is changed on the bare first figure", BARE, BARE, KEEP, **CHANGED),
    case("a widget is changed while the browser still sends the older address", OLD, NOW, KEEP, **CHANGED),
    case("a widget is changed while the browser still sends the bare address", BARE, NOW, KEEP, **CHANGED),
    case("another page from the menu, whose links carry the settings", NOW, NOW, RESTORE, **OTHER),
    case("another page by a link with settings of its own", OLD, NOW, ADOPT, **OTHER),
    case("another page by its bare address", BARE, NOW, RESTORE, **OTHER),
    case("another page by its bare address, nothing set yet", BARE, BARE, RESTORE, **OTHER),
    case("another page while a widget was being changed", OLD, NOW, RESTORE, **OTHER, **CHANGED),
    case("Back to another page with older settings", OLD, NOW, ADOPT, **OTHER),
    case("a link names a text by its hash, and it is missing", {"text": UNKNOWN}, None, ADOPT, UNKNOWN, **OTHER),
    case("a link names a text by its hash, and it is at hand", {"text": KNOWN}, None, ADOPT, **OTHER),
    case("Back to a link whose text is missing", {"text": UNKNOWN}, NOW, ADOPT, UNKNOWN),
    case("the page runs again while its text is missing", {"text": UNKNOWN}, {"text": UNKNOWN}, KEEP),
]


@pytest.mark.parametrize(("situation", "decision"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_counts(situation: Situation, decision: Decision) -> None:
    assert reconcile(situation) == decision


ADDRESSES: list[tuple[str, Callable[[], Query], Query]] = [
    ("a change is written", lambda: address_of(NOW, OLD, is_ordinary=False), NOW),
    ("the same is not written again", lambda: address_of(NOW, NOW, is_ordinary=False), NOW),
    ("the bare first address stays bare", lambda: address_of(NOW, BARE, is_ordinary=True), BARE),
    ("the first change leaves the bare address", lambda: address_of(NOW, BARE, is_ordinary=False), NOW),
    ("ordinary settings set by hand are written out", lambda: address_of(NOW, OLD, is_ordinary=True), NOW),
    (
        "a text still asked for goes on being named",
        lambda: address_of({"text": "story"}, {"text": UNKNOWN}, is_ordinary=True, missing_text=UNKNOWN),
        {"text": UNKNOWN},
    ),
    (
        "a text that was brought is named by itself",
        lambda: address_of({"text": KNOWN}, {"text": UNKNOWN}, is_ordinary=False),
        {"text": KNOWN},
    ),
]


@pytest.mark.parametrize(("address", "expected"), [a[1:] for a in ADDRESSES], ids=[a[0] for a in ADDRESSES])
def test_what_the_address_bar_holds(address: Callable[[], Query], expected: Query) -> None:
    assert address() == expected
