"""Where does it look? Maps of one head under A and B on the same scale, and the layers and heads to choose from."""

import numpy as np
import streamlit as st

from kvviz.figures.attention import attention_map, difference_map
from kvviz.figures.scales import shared_top
from kvviz.ui import attention_view as look
from kvviz.ui.components.layer_head_picker import layer_head_picker
from kvviz.ui.components.token_strip import token_strip
from kvviz.ui.page import open_page, show
from kvviz.ui.state import SCALES, kept

page = open_page("Attention", "Where does it look?")
headline = st.empty()
layer, _ = look.layer_and_head(page.view)
a, b = page.runs(layer=layer)
layer, head = look.layer_and_head(page.view, a)
maps = [run.trace.maps[layer, head] for run in (a, b)]
with headline.container():
    page.headline(look.headline(a, layer, head, look.query_of(page.view, a)))

scale = st.segmented_control("Colours", SCALES, format_func=look.SCALE_WORDS.get, **kept("scale", "log"), required=True)
top = shared_top(maps, scale)
for column, side, run, weights in zip(st.columns(2), "AB", (a, b), maps, strict=True):
    with column:
        title = f"{side}: {run.trace.setup}"
        figure = attention_map(weights, run.labels, scale=scale, top=top, title=title)
        show(figure, f"map-{side}", look.map_csv(run, layer, head))
st.caption(look.row_sums(maps))

left, right = st.columns(2)
with left:
    measure = st.selectbox(
        "Choose a layer and head by", list(look.MEASURES), format_func=look.MEASURES.get, **kept("measure", "sink_mass")
    )
    st.session_state["overview"] = (layer, head)
    values, name = look.overview(a, measure)
    layer_head_picker(
        values, (layer, head), name=name, key="overview", kv_heads=a.trace.kv_heads, on_pick=look.choose_place
    )
with right:
    title = f"A − B, layer {layer}, head {head}"
    show(difference_map(maps[0], maps[1], a.labels, title=title), "difference")

st.subheader("One query over the text", anchor=False)
query = look.query_of(page.view, a)
st.caption(look.query_words(a, layer, head, query))
st.session_state["strip"] = query
weights = np.asarray(maps[0][query])
token_strip(
    a.texts, weights, query=query, key="strip", scale="linear" if scale == "linear" else "log",
    count_from=a.count_from, on_pick=look.choose_query,
)  # fmt: skip

page.lesson("attention")
page.try_this(look.IDEAS)
