"""Where does it look? Maps of one head under A and B on the same scale, and the layers and heads to choose from."""

import numpy as np
import streamlit as st

from kvviz.ui.attention import agreement, figures, gallery
from kvviz.ui.attention import view as look
from kvviz.ui.attention.controls import map_menus, measure_menu
from kvviz.ui.attention.settings import AttentionSettings
from kvviz.ui.components.layer_head_picker import layer_head_picker
from kvviz.ui.components.token_strip import token_strip
from kvviz.ui.pages import open_page
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.page import show
from kvviz.ui.shell.words import COUNTS_FROM_ONE

page = open_page("Attention", "Where does it look?")
a, b = page.runs(maps=True)
layer, head = look.layer_and_head(page.view, a)
query = look.query_of(page.view, a)
scale, average = map_menus()
maps = [look.map_of(run, layer, head, average) for run in (a, b)]
place = f"layer {layer}, {f'head {head}' if average == 'head' else 'mean of its heads'}"
page.headline(look.headline(a, maps[0][query], layer, head if average == "head" else None, query))

for column, side, figure in zip(st.columns(2), "AB", figures.map_figures((a, b), maps, scale), strict=True):
    with column:
        show(figure, f"map-{side}")
st.caption(look.row_sums(maps))
page.paint()

if a.trace.tokens <= look.FEW_TOKENS:
    left, right = st.columns(2)
    with left:
        show(figures.visibility_figure(a, maps[0]), "visibility")
    with right:
        st.markdown(f"**The same in words** {COUNTS_FROM_ONE if a.count_from else ''}")
        st.code(look.seen_by(a, layer, head), language=None)

left, right = st.columns(2)
with left:
    st.session_state["overview"] = (layer, head)
    values, name = look.overview(a, measure_menu())
    layer_head_picker(
        values, (layer, head), name=name, key="overview", kv_heads=a.trace.kv_heads, on_pick=look.choose_place
    )
with right:
    show(figures.difference_figure(a, maps, place, scale), "difference")
    st.subheader("One query over the text", anchor=False, help=meaning("query"))
    st.caption(look.query_words(a, layer, head, query))
    st.session_state["strip"] = query
    token_strip(
        a.texts,
        np.asarray(maps[0][query]),
        query=query,
        key="strip",
        scale="linear" if scale == "linear" else "log",
        count_from=a.count_from,
        on_pick=look.choose_query,
    )

agreement.draw(a, b, layer, head, query, page.view.of(AttentionSettings).top_k)
gallery.draw()
page.lesson("attention")
page.try_this()
