"""Why the first token? How much attention the first tokens take, and what happens when they go."""

import streamlit as st

from kvviz.ui.attention.view import layer_and_head
from kvviz.ui.pages import open_page
from kvviz.ui.shell.parts import part_menu
from kvviz.ui.sinks import parts
from kvviz.ui.sinks import view as look
from kvviz.ui.sinks.controls import mass_picker, sinks_menu
from kvviz.ui.sinks.settings import PARTS, SinksSettings

page = open_page("Sinks", "Why the first token?")
a, b = page.runs()
chosen = layer_and_head(page.view, a)
sinks = sinks_menu(page.view)
page.headline(look.headline(a, sinks))

for column, side, run in zip(st.columns(2), "AB", (a, b), strict=True):
    with column:
        mass_picker(run, side, look.shares(run, sinks), chosen)
page.paint()

part = part_menu(SinksSettings, PARTS)
place = st.container()  # what it computes may take seconds, and the lesson need not wait
page.lesson("sinks")
with place:
    parts.draw(part, page.view, (a, b), sinks, chosen[0])
