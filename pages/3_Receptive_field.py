"""How far can it see? The exact reach through the layers, and beside it what is measured on the model."""

import streamlit as st

from kvviz.ui.pages import open_page
from kvviz.ui.receptive_field import figures, parts
from kvviz.ui.receptive_field import view as look
from kvviz.ui.receptive_field.bounds import bound_words
from kvviz.ui.receptive_field.controls import measured_by, query_field, source_field
from kvviz.ui.receptive_field.runs import depths_job, pair_job
from kvviz.ui.receptive_field.settings import PARTS, ReachSettings
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.parts import part_menu
from kvviz.ui.shell.words import COUNTS_FROM_ONE, plain

page = open_page("Receptive field", "How far can it see?")
a, b = page.runs()
query, depth = look.place(page.view, a)

left, middle, right = st.columns(3)
query_field(left, a)
source_field(middle, a, query)
by = measured_by(right)
notes = st.container()
left, right = st.columns(2)
depths_place, depths_slot = left.container(), left.empty()
pair = waiting.extra(*pair_job(page.view.experiment.model, a, b, query, depth), st.empty())

if pair:
    seen = pair.a
    path = look.path_of(seen, look.source_of(page.view, seen))
    page.headline(look.headline(a, seen, query, depth, by))
    for note in look.notes(page.view, a, seen):
        notes.caption(plain(note))
    with right:
        show(figures.cone(a, seen, path), "paths")
    counted = f" Positions are {COUNTS_FROM_ONE[1:-1]}." if a.count_from else ""
    st.markdown(plain(look.path_words(a, seen, path, by)) + counted)
    st.markdown(plain(bound_words(a.trace.setup, seen, depth)) + " " + plain(look.full_words(seen)))
parts.draw(part_menu(ReachSettings, PARTS), pair, (a, b), depth, by)
page.lesson("receptive_field")

if every := waiting.extra(*depths_job(page.view.experiment.model, a, query, depth), depths_slot):
    with depths_place:
        show(figures.depths(a, every, by, depth), "depths")
        st.caption(look.few_words(every, a))
