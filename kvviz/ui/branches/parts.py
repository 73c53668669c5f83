"""The supporting parts of the Branches page; only the open one is computed."""

from __future__ import annotations

import streamlit as st

from kvviz.ui.branches import view as look
from kvviz.ui.branches.run import Drafted, cost_job
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain


def draw(part: str, view: View, drafted: Drafted, step: int) -> None:
    """The part that is open."""
    if part == "lengths":
        st.markdown(plain(look.length_words(drafted)), help=meaning("draft"))
        show(look.lengths_figure(drafted, step), "lengths-accepted")
    elif part == "mask":
        show(look.mask_figure(drafted, step), "tree-mask")
    elif part == "slots":
        st.markdown(plain(look.slot_words(drafted, step)))
        show(look.slots_figure(drafted, step), "slots-of-the-step")
    elif part == "equal":
        st.markdown(plain(look.equal_words(drafted)))
    else:
        draw_cost(view, drafted, step)


def draw_cost(view: View, drafted: Drafted, step: int) -> None:
    """Timed on request: it is this machine's own."""
    key, compute = cost_job(view, step, drafted)
    if not waiting.asked(key, "Time the tree of this step"):
        return
    if found := waiting.extra(key, compute, st.empty()):
        st.markdown(plain(look.cost_words(found.value, drafted)))
