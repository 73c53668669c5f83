"""What is lost, what is saved? The loss along the text, budgets, needles, and four ways to read on."""

import streamlit as st

from kvviz.ui.attention.view import layer_and_head
from kvviz.ui.pages import open_page
from kvviz.ui.quality import parts
from kvviz.ui.quality import view as look
from kvviz.ui.quality.settings import PARTS, QualitySettings
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.parts import part_menu

page = open_page("Quality", "What is lost, what is saved?")
a, b = page.runs(maps=look.needs_maps(page.view))
layer, _ = layer_and_head(page.view, a)
page.headline(look.headline(a, b))
show(look.stream_figure(a, b), "loss-along-the-text")
page.paint()

part = part_menu(QualitySettings, PARTS)
place = st.container()  # what it computes may take seconds, and the lesson need not wait
page.lesson("quality")
with place:
    parts.draw(part, page.view, (a, b), layer)
