"""Where did the prefix break? Prompts over shared blocks: hits, the first token that differs, and why."""

import streamlit as st

from kvviz.ui.pages import open_page
from kvviz.ui.prefixes import parts
from kvviz.ui.prefixes import view as look
from kvviz.ui.prefixes.run import share_job
from kvviz.ui.prefixes.settings import PARTS, PrefixesSettings
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.parts import part_menu
from kvviz.ui.shell.words import plain

page = open_page("Prefixes", "Where did the prefix break?")
chosen = page.view.of(PrefixesSettings)
heading = page.top.empty()
try:
    look.controls(chosen)
    key, compute = share_job(page.view)
except ValueError as error:
    st.error(plain(str(error)))
    st.stop()
waits, figure = st.empty(), st.container()
part = part_menu(PrefixesSettings, PARTS)
place = st.container()  # what it computes may take seconds, and the lesson need not wait
page.lesson("prefixes")
result = waiting.extra(key, compute, waits)
if result is None:
    st.stop()
shared = result.value
heading.markdown(f"## {plain(look.headline(shared))}")
with figure:
    show(look.tree_figure(shared), "radix-tree")
    look.draw_break(shared, chosen)
with place:
    parts.draw(part, chosen, shared)
