"""Where does it look? Maps of one head under A and B on the same scale, and the layers and heads to choose from."""

import streamlit as st

from kvviz.ui.attention import figures, parts
from kvviz.ui.attention import view as look
from kvviz.ui.attention.controls import map_menus
from kvviz.ui.attention.settings import PARTS, AttentionSettings
from kvviz.ui.pages import open_page
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.parts import part_menu

page = open_page("Attention", "Where does it look?")
a, b = page.runs(maps=True)
place = look.place_of(page.view, a)
scale, average = map_menus()
maps = [look.map_of(run, place.layer, place.head, average) for run in (a, b)]
for note in look.query_notes(page.view, a):
    st.caption(note)
page.headline(look.headline(a, maps[0][place.query], place.layer, look.named(place.head, average), place.query))

for column, side, figure in zip(st.columns(2), "AB", figures.map_figures((a, b), maps, scale), strict=True):
    with column:
        show(figure, f"map-{side}")
st.caption(look.row_sums(maps))
page.paint()

part = part_menu(AttentionSettings, PARTS)
parts.draw(part, page.view, (a, b), maps, place, scale, average)
page.lesson("attention")
