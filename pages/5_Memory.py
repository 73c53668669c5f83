"""What does it cost? Exact bytes of any model's cache, by the formula; only the last part runs the model."""

import streamlit as st

from kvviz.ui.memory import parts
from kvviz.ui.memory import view as look
from kvviz.ui.memory.controls import controls
from kvviz.ui.memory.settings import PARTS, MemorySettings
from kvviz.ui.pages import open_page
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.parts import part_menu
from kvviz.ui.shell.words import plain

page = open_page("Memory", "What does it cost?")
chosen = controls(page.view)
found, notes = look.bills(chosen, page.view)
page.headline(look.headline(chosen, found))
for note in notes:
    st.caption(plain(note))

left, right = st.columns(2)
with left:
    show(look.boxes(chosen, found), "boxes")
with right:
    show(look.lines_figure(chosen, found), "bytes-against-context")

parts.draw(part_menu(MemorySettings, PARTS), page, chosen, found)
page.lesson("memory")
