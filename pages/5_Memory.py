"""What does it cost? Exact bytes of any model's cache, by the formula; only the panels at the end run the model."""

import streamlit as st

from kvviz.ui.memory import tables
from kvviz.ui.memory import view as look
from kvviz.ui.memory.controls import controls
from kvviz.ui.memory.panels import panels
from kvviz.ui.pages import open_page
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.page import show
from kvviz.ui.shell.words import plain

page = open_page("Memory", "What does it cost?")
chosen = controls(page.view)
found, notes = look.bills(chosen, page.view)
page.headline(look.headline(chosen, found))
for note in notes:
    st.caption(plain(note))

left, right = st.columns(2)
with left:
    show(look.boxes(chosen, found), "boxes")
with right:
    show(look.lines_figure(chosen, found), "bytes-against-context")

st.subheader("The formula with these numbers", anchor=False)
for bill in found:
    if bill.is_whole or bill.account.bytes != found[0].account.bytes:
        st.markdown(f"**{bill.name}** {plain(bill.words)}")
        for row in bill.account.rows:
            st.latex(look.latex(row))

st.subheader("By group of layers", anchor=False, help=meaning("MHA, GQA, MQA, MLA"))
st.markdown(look.groups_table(found))
st.caption(f"{tables.head_words(chosen)} {tables.source_words(chosen)}")
st.subheader("How many tokens and sequences fit", anchor=False)
st.markdown(tables.fit_words(chosen))
st.markdown(tables.fit_table(chosen, found))

st.subheader("What engines allocate, and other storage, with everything kept", anchor=False, help=meaning("payload"))
left, right = st.columns(2)
left.markdown(tables.engines_table(chosen))
left.caption(tables.engine_rules())
right.markdown(tables.storages_table(chosen))

panels(page)
page.lesson("memory")
page.try_this()
