"""What is lost, what is saved? The loss along a stream, budgets, needles, and four ways to read on."""

import streamlit as st

from kvviz.ui.pages import open_page
from kvviz.ui.quality import parts, setups, stream
from kvviz.ui.quality.settings import PARTS, QualitySettings
from kvviz.ui.shell.parts import part_menu

page = open_page("Quality", "What is lost, what is saved?")
heading, waits, figure = page.top.empty(), st.empty(), st.empty()
setups.menu(page.view)
stream.controls()
part = part_menu(QualitySettings, PARTS)
place = st.container()  # what it computes may take seconds, and the lesson need not wait
page.lesson("quality")
stream.draw(page.view, heading, figure, waits)
with place:
    parts.draw(part, page)
