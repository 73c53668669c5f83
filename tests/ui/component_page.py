"""A page with every component on random lifetimes; the browser tests drive it."""

import numpy as np
import streamlit as st

from kvviz.figures import role_codes
from kvviz.ui.components import layer_head_picker, step_player, token_strip
from tests.ui.component_data import COUNT, TOKENS, lifetimes, streaming_role

seed = st.number_input("seed", 0, 9, 0)
step_player(
    TOKENS,
    lifetimes(seed),
    heads=["KV head 0", "KV head 1"],
    count_from=1,
    prompt_tokens=20,
    start_step=5,
    roles=role_codes(streaming_role, COUNT),
    key="player",
)
words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
window = np.minimum(np.arange(12) + 4, 12)
step_player(words, window, count_from=1, start_step=7, budget=4, ring=True, key="ring")

values = np.random.default_rng(0).random((6, 9))
layer, head = layer_head_picker(values, (2, 3), name="sink mass", kv_heads=3, key="cell")
st.text(f"cell {layer} {head}")

query = st.session_state.get("query", 5)
weights = np.where(np.arange(COUNT) <= query, 1 / (1 + np.arange(COUNT)), np.nan)
weights[2] = np.nan
token_strip(TOKENS, weights, query=query, key="query")
st.text(f"query {st.session_state['query']}")
