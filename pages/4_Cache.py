"""What does it still hold? Lifetimes of the tokens, the slots step by step, entries and bytes over time."""

import streamlit as st

from kvviz.ui.cache import parts
from kvviz.ui.cache import view as look
from kvviz.ui.cache.settings import PARTS, CacheSettings
from kvviz.ui.pages import open_page
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.parts import part_menu

page = open_page("Cache", "What does it still hold?")
a, b = page.runs(maps=look.needs_maps(page.view))
layer, head = look.place(page.view, a)
page.headline(look.headline(a, layer, head))

sides = look.sides_of(a, b)
for column, (side, name, run) in zip(st.columns(2), sides, strict=True):
    with column:
        show(look.lifetimes_figure(run, layer, head, side, name), f"lifetimes-{side.upper()}")
page.paint()

parts.draw(part_menu(CacheSettings, PARTS), sides, layer, head)
page.lesson("cache")
