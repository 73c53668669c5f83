"""How few bits? What coding keys and values changes in every layer and head, and what it costs and saves."""

import streamlit as st

from kvviz.ui.pages import open_page
from kvviz.ui.precision import errors as look
from kvviz.ui.precision import parts
from kvviz.ui.precision.settings import PARTS, PrecisionSettings
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.parts import part_menu
from kvviz.ui.shell.words import plain

page = open_page("Precision", "How few bits?")
heading, waits, figures = page.top.empty(), st.empty(), st.container()
look.controls()
try:
    look.storages(page.view)
except ValueError as error:
    st.error(plain(str(error)))
    st.stop()
part = part_menu(PrecisionSettings, PARTS)
place = st.container()  # what it computes may take seconds, and the lesson need not wait
page.lesson("precision")
result = waiting.extra(*look.errors_job(page.view), waits)
if result is None:
    st.stop()
found, chosen = result.value, page.view.of(PrecisionSettings)
heading.markdown(f"## {plain(look.headline(found, chosen))}")
with figures:
    left, right = st.columns(2)
    with left:
        show(look.map_figure(found, chosen), "error-by-head")
    with right:
        show(look.lines_figure(found, chosen), "error-by-layer")
    st.caption(plain(look.measured_words(found, chosen)))
with place:
    parts.draw(part, page.view, found)
