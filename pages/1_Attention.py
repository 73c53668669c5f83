"""Where does it look? Maps of one head under A and B on the same scale, and the layers and heads to choose from."""

import numpy as np
import streamlit as st

from kvviz.figures.attention import attention_map, difference_map, visibility
from kvviz.figures.scales import shared_top
from kvviz.ui import attention_view as look
from kvviz.ui.components.layer_head_picker import layer_head_picker
from kvviz.ui.components.token_strip import token_strip
from kvviz.ui.drawn import drawn
from kvviz.ui.page import open_page, show
from kvviz.ui.state import SCALES, kept
from kvviz.ui.words import COUNTS_FROM_ONE, setup_words

page = open_page("Attention", "Where does it look?")
a, b = page.runs(maps=True)
layer, head = look.layer_and_head(page.view, a)
query = look.query_of(page.view, a)
maps = [run.trace.maps[layer, head] for run in (a, b)]
page.headline(look.headline(a, layer, head, query))

scale = st.segmented_control("Colours", SCALES, format_func=look.SCALE_WORDS.get, **kept("scale", "log"), required=True)
top = shared_top(maps, scale)
for column, side, run, weights in zip(st.columns(2), "AB", (a, b), maps, strict=True):
    with column:
        title = f"{side}: {setup_words(run.trace.setup)}"
        figure = drawn(attention_map, weights, run.labels, scale=scale, top=top, title=title, limit=look.CELLS)
        show(figure, f"map-{side}", look.map_csv(run, layer, head))
st.caption(look.row_sums(maps))

if a.trace.tokens <= look.FEW_TOKENS:
    left, right = st.columns(2)
    with left:
        seen = np.isfinite(maps[0])
        title = f"What each query may see. A: {setup_words(a.trace.setup)}"
        show(drawn(visibility, seen, a.labels, title=title), "visibility")
    with right:
        st.markdown(f"**The same in words** {COUNTS_FROM_ONE if a.count_from else ''}")
        st.code(look.seen_by(a, layer, head), language=None)

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
    left_out = 4 if scale == "no_sinks" else 0
    looks = {"title": title, "limit": look.CELLS, "sinks": left_out}
    show(drawn(difference_map, maps[0], maps[1], a.labels, **looks), "difference")
    st.subheader("One query over the text", anchor=False)
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

page.lesson("attention")
page.try_this(look.IDEAS)
