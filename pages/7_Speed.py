"""How fast, and what is the limit? The time of a step, the bytes it reads, and a run report."""

import streamlit as st

from kvviz.ui.pages import open_page
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.parts import part_menu
from kvviz.ui.shell.runs import TOKENS_ON_A_PAGE
from kvviz.ui.shell.words import plain
from kvviz.ui.speed import parts
from kvviz.ui.speed import view as look
from kvviz.ui.speed.settings import LEAST_TOKENS, PARTS, SpeedSettings
from kvviz.ui.speed.steps import steps_job

page = open_page("Speed", "How fast, and what is the limit?")
try:
    field = st.columns(3)[0]
    longest = whole_number(field, "Longest prompt (tokens)", "speed_tokens", 1024, LEAST_TOKENS, TOKENS_ON_A_PAGE)
except ValueError as error:
    st.error(str(error))
    st.stop()
found = waiting.extra(*steps_job(page.view, longest), st.empty())
if found is None:
    st.stop()
page.headline(look.headline(found))
left, right = st.columns(2)
with left:
    show(look.times_figure(found), "step-times")
with right:
    show(look.bytes_figure(found), "bytes-read")
st.markdown(plain(look.growth(found)))
st.caption(look.measured_on(found))
part = part_menu(SpeedSettings, PARTS)
place = st.container()
page.lesson("speed")
with place:
    parts.draw(part, page.view, found)
