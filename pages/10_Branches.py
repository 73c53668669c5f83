"""What about drafts? Trees of drafted tokens, verified in one forward, and the cache they leave."""

import streamlit as st

from kvviz.ui.branches import parts
from kvviz.ui.branches import view as look
from kvviz.ui.branches.run import draft_job
from kvviz.ui.branches.settings import PARTS, BranchesSettings
from kvviz.ui.pages import open_page
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.parts import part_menu
from kvviz.ui.shell.words import plain

page = open_page("Branches", "What about drafts?")
chosen = page.view.of(BranchesSettings)
heading, waits, figure = page.top.empty(), st.empty(), st.container()
try:
    look.controls(chosen)
except ValueError as error:
    st.error(plain(str(error)))
    st.stop()
part = part_menu(BranchesSettings, PARTS)
place = st.container()  # what it computes may take seconds, and the lesson need not wait
page.lesson("branches")
result = waiting.extra(*draft_job(page.view), waits)
if result is None:
    st.stop()
drafted = result.value
step = drafted.step(chosen.step)
heading.markdown(f"## {plain(look.headline(drafted))}")
with figure:
    if note := look.range_words(drafted, chosen.step):
        st.info(note)
    st.markdown(plain(look.step_words(drafted, step)))
    show(look.tree_figure(drafted, step, page.view.head), "draft-tree")
with place:
    parts.draw(part, page.view, drafted, step)
