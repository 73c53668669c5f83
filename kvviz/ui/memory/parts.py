"""The supporting tables of the Memory page, and the panels that run the model; only the open part is there."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kvviz.ui.memory import tables
from kvviz.ui.memory import view as look
from kvviz.ui.memory.controls import Chosen
from kvviz.ui.memory.panels import panels
from kvviz.ui.memory.view import Bill
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.words import plain


def draw(part: str, page: Page, chosen: Chosen, found: Sequence[Bill]) -> None:
    """The part that is open."""
    if part == "formula":
        formula(chosen, found)
    elif part == "fit":
        st.markdown(tables.fit_words(chosen))
        st.markdown(tables.fit_table(chosen, found))
    elif part == "engines":
        engines(chosen)
    else:
        panels(page)


def formula(chosen: Chosen, found: Sequence[Bill]) -> None:
    """The product with its numbers, of everything kept and of each side that keeps less; then by group of layers."""
    for bill in found:
        if bill.is_whole or bill.account.bytes != found[0].account.bytes:
            st.markdown(f"**{bill.name}** {plain(bill.words)}")
            for row in bill.account.rows:
                st.latex(look.latex(row))
    st.markdown("**By group of layers**", help=meaning("MHA, GQA, MQA, MLA"))
    st.markdown(look.groups_table(found))
    st.caption(f"{tables.head_words(chosen)} {tables.source_words(chosen)}")


def engines(chosen: Chosen) -> None:
    """What engines set aside, and the same entries stored otherwise."""
    st.markdown("**With every token kept**", help=meaning("payload"))
    left, right = st.columns(2)
    left.markdown(tables.engines_table(chosen))
    left.caption(tables.engine_rules())
    right.markdown(tables.storages_table(chosen))
