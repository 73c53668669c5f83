"""The supporting parts of the Prefixes page."""

from __future__ import annotations

import streamlit as st

from kvviz.ui.prefixes import view as look
from kvviz.ui.prefixes.run import Shared
from kvviz.ui.prefixes.settings import MOST_STEPS, PrefixesSettings
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.words import plain


def draw(part: str, chosen: PrefixesSettings, shared: Shared) -> None:
    """The part that is open."""
    if part == "blocks":
        draw_blocks(chosen, shared)
    elif part == "saved":
        st.markdown(plain(look.saved_words(shared)))
        show(look.saved_figure(shared), "time-to-read")
    else:
        st.markdown(plain(look.equal_words(shared)))
        show(look.gap_figure(shared), "gap-to-fresh")


def draw_blocks(chosen: PrefixesSettings, shared: Shared) -> None:
    """The pool after a step."""
    last = len(shared.sharing.steps) - 1
    try:
        field = st.columns(4)[0]
        whole_number(field, f"Step (0–{last})", "prefix_step", None, 0, MOST_STEPS, placeholder="the last")
    except ValueError as error:
        st.error(str(error))
    if chosen.step is not None and chosen.step > last:
        st.info(f"There is no step {chosen.step}: the steps are 0–{last}. The last one is shown.")
    step = look.step_of(shared, chosen.step)
    st.markdown(plain(look.step_words(shared, step)))
    show(look.pool_figure(shared, step), "blocks")
