"""When may a cache be reused? Cached against uncached answers, and what breaks them."""

import streamlit as st

from kvviz.ui.exactness import parts
from kvviz.ui.exactness import view as look
from kvviz.ui.exactness.settings import PARTS, ExactnessSettings
from kvviz.ui.pages import open_page
from kvviz.ui.shell.parts import part_menu

page = open_page("Exactness", "When may a cache be reused?")
heading, waits, figure = page.top.empty(), st.empty(), st.empty()
look.switches()
part = part_menu(ExactnessSettings, PARTS)
place = st.container()  # what it computes may take seconds, and the lesson need not wait
page.lesson("exactness")
lines = look.draw(page.view, heading, figure, waits)
with place:
    parts.draw(part, page.view, lines)
