"""How far can it see? The exact reach through the layers, and beside it what is measured on the model."""

import streamlit as st

from kvviz.figures.distance import distance_lines
from kvviz.figures.reach import cone_map, depth_map, parts_map
from kvviz.ui.attention.view import quoted
from kvviz.ui.pages import open_page
from kvviz.ui.receptive_field import view as look
from kvviz.ui.receptive_field.bounds import bound_words, calculator
from kvviz.ui.receptive_field.controls import measured_by, query_field, source_field
from kvviz.ui.receptive_field.runs import depths_job, pair_job
from kvviz.ui.shell import waiting
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.page import show
from kvviz.ui.shell.words import COUNTS_FROM_ONE, plain, side_words

page = open_page("Receptive field", "How far can it see?")
a, b = page.runs()
query, depth = look.place(page.view, a)
token, passed = quoted(a, query), look.layers_words(depth)

left, right = st.columns(2)
query_field(left, a)
source_field(right, a, query)
measured = measured_by()
left, right = st.columns(2)
depths_place, depths_slot = left.container(), left.empty()
pair = waiting.extra(*pair_job(page.view.experiment.model, a, b, query, depth), st.empty())

if pair:
    seen = pair.a
    path = look.path_of(seen, look.source_of(page.view, a, seen))
    page.headline(look.headline(a, seen, query, depth))
    with right:
        title = f"How the input reaches token {token}: layer by layer under A"
        cone, levels = seen.cone[0], seen.found.levels[0]
        show(drawn(cone_map, levels, cone, a.labels[: query + 1], path=path, title=title), "cone")
    st.markdown(
        plain(look.path_words(a, seen, path)) + (f" Positions are {COUNTS_FROM_ONE[1:-1]}." if a.count_from else "")
    )
    st.markdown(plain(bound_words(a.trace.setup, seen, depth)) + " " + plain(look.full_words(seen)))
    left, right = st.columns(2)
    with left:
        series = look.distance_series(pair, (a, b))
        title = f"Influence on token {token} against distance, through {passed}"
        show(drawn(distance_lines, series, title=title), "distance")
        st.markdown(plain(look.distance_words(pair, depth)))
    with right:
        title = f"The parts of layer {depth - 1}: which positions influence token {token}"
        show(drawn(parts_map, look.parts(seen), a.labels[: query + 1], title=title), "parts")
        st.markdown(plain(look.parts_words(seen, depth)))
        st.caption(look.notes(a.trace.setup))

st.subheader("Calculator", anchor=False, help=meaning("receptive field", "dilation"))
st.markdown(calculator())
page.lesson("receptive_field")
page.try_this()

if every := waiting.extra(*depths_job(page.view.experiment.model, a, query, depth), depths_slot):
    with depths_place:
        found, depths = every.found.gradient if measured == "gradient" else every.found.rollout, every.found.depths
        title = f"What token {token} depends on, by the number of layers. {side_words('A', a.trace.setup)}"
        figure = drawn(depth_map, found, every.reach, depths, a.labels[: query + 1], title=title, mark=depth)
        show(figure, "depths")
        st.caption(look.few_words(every, a))
