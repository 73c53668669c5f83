"""The two panels of the Memory page that run the model, and only when they are asked to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import streamlit as st

from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import Setup
from kvviz.memory.account import bytes_of
from kvviz.memory.config import shape_of
from kvviz.memory.retention import ask_for, doubts
from kvviz.memory.units import both
from kvviz.run.trace import Trace
from kvviz.ui.shell import runs, waiting
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.words import plain, plural, setup_words

STEPPED_TOKENS = 96  # stepping costs a forward a token
MERGED_TOKENS = 256


@dataclass(frozen=True)
class Held:
    """The tensors of one side beside its formula."""

    name: str
    words: str
    tensor_bytes: int
    formula_bytes: int
    formula: str  # where the number comes from


@dataclass(frozen=True)
class Measured:
    """What the running model held after so many tokens; small, so that results may be kept."""

    tokens: int
    rows: tuple[Held, ...]
    bytes: int = 1000


@dataclass(frozen=True)
class Merged:
    """The model with its own KV heads and with their mean: KV heads, cache bytes and loss of each."""

    tokens: int
    kv_heads: int
    cache_bytes: tuple[int, int]
    losses: tuple[float, float]
    bytes: int = 1000


def panels(page: Page) -> None:
    """Both panels; each waits for its button.

    Side by side, so that the progress and result of one do not move the other's button while somebody presses it.
    """
    left, right = st.columns(2)
    with left:
        st.subheader("What the running model holds, measured", anchor=False)
        st.caption(
            f"Feeds at most {STEPPED_TOKENS} tokens of the sidebar's text one by one under A and under B, then counts "
            "the bytes of the cache's tensors."
        )
        if measured := on_request("measured", "Measure the tensors", page.sides, measure):
            st.markdown(measured_words(measured))
    with right:
        st.subheader("Merge the KV heads", anchor=False, help=meaning("KV head", "MHA, GQA, MQA, MLA"))
        st.caption(
            f"Averages the KV heads of the running model into one (MQA) and reads at most {MERGED_TOKENS} tokens with "
            "everything kept, before and after."
        )
        if merged := on_request("merged", "Merge them", page.sides[:1], merge):
            st.markdown(merged_words(merged))


def on_request(name: str, label: str, sides: list[Experiment], compute: Callable[[list[Experiment], Job], Any]) -> Any:
    """The result, once its button was pressed for these settings; None until then or after a stop."""
    key = (name, *(runs.key_of(side, None) for side in (sides if name == "measured" else [plain_side(sides[0])])))
    place = st.container()  # not a slot emptied first: that takes the button away and puts it back at every rerun
    if st.session_state.get(f"mem_asked.{name}") != key and runs.WORKER.result(key) is None:
        place.button(label, key=f"mem_ask.{name}", on_click=ask, args=(name, key))
        return None
    return waiting.extra(key, lambda job: compute(sides, job), place.empty())


def plain_side(side: Experiment) -> Experiment:
    """What merging depends on: model and text, no setup."""
    return Experiment(text=side.text, tokens=side.tokens, model=side.model)


def ask(name: str, key: runs.Key) -> None:
    st.session_state[f"mem_asked.{name}"] = key
    waiting.try_again([key])


def measure(sides: list[Experiment], job: Job) -> Measured:
    """Step both sides, blocks of one, and count."""
    from kvviz.run.replay import replay

    loaded = runs.loaded_model(sides[0].model, job.tell)
    ids = runs.token_ids(sides[0].model, sides[0].text.content)[: min(sides[0].tokens, STEPPED_TOKENS)]
    prompt = min(sides[0].prompt_tokens or max(1, len(ids) // 2), len(ids))
    rows = []
    for name, side in zip("AB", sides, strict=True):
        watch = watched(job, f"Stepping through {plural(len(ids), 'token')} under {name}")
        trace = replay(loaded.model, ids, side.setup, prompt_tokens=prompt, block=1, **watch)
        rows.append(held(name, trace, loaded))
    return Measured(len(ids), tuple(rows))


class Watch(TypedDict):
    """How a run tells its progress and learns that nobody waits for it."""

    progress: Callable[[float], None]
    is_cancelled: Callable[[], bool]


def watched(job: Job, doing: str) -> Watch:
    return {"progress": lambda share: job.report(doing, share), "is_cancelled": job.is_unwanted}


def held(name: str, trace: Trace, loaded: Any) -> Held:
    """The formula from the model's own config; where holes depend on the text, from the lifetimes of the entries."""
    setup, shape = trace.setup, shape_of(loaded.model.config.to_dict(), loaded.card.name)
    dtype = str(loaded.dtype).removeprefix("torch.")
    if doubts(setup.policy, setup.storage, shape):
        return Held(name, setup_words(setup), trace.cache_bytes, int(trace.bytes_at()[-1]), "from the lifetimes")
    asked = ask_for(setup.policy, shape, trace.prompt_tokens, tokens=trace.tokens, dtype=dtype, storage=setup.storage)
    return Held(name, setup_words(setup), trace.cache_bytes, bytes_of(shape, asked), f"the formula in {dtype}")


def merge(sides: list[Experiment], job: Job) -> Merged:
    """Read the text with the model's own KV heads, then with their mean."""
    from kvviz.analysis.merged_heads import merge_kv_heads
    from kvviz.run.replay import replay

    loaded = runs.loaded_model(sides[0].model, job.tell)
    ids = runs.token_ids(sides[0].model, sides[0].text.content)[: min(sides[0].tokens, MERGED_TOKENS)]
    if len(ids) < 2:
        raise ValueError("One token has no loss to compare; choose at least two tokens.")
    heads = loaded.model.config.get_text_config(decoder=True).num_key_value_heads
    traces = []
    for doing, model in (("Reading with its own heads", loaded.model), ("Reading with merged heads", None)):
        model = model or merge_kv_heads(loaded.model)
        traces.append(replay(model, ids, Setup(), **watched(job, doing)))
    before, after = traces
    losses = float(np.mean(before.nll)), float(np.mean(after.nll))
    return Merged(len(ids), heads, (before.cache_bytes, after.cache_bytes), losses)


def measured_words(measured: Measured) -> str:
    """A table with a column for each side."""
    rows = measured.rows
    lines = {
        f"after {plural(measured.tokens, 'token')}": [f"{row.name}: {plain(row.words)}" for row in rows],
        ":--": ["--:"] * len(rows),
        "tensors": [f"{row.tensor_bytes:,} B" for row in rows],
        "formula": [f"{row.formula_bytes:,} B" for row in rows],
        "": [f"{difference(row)} ({row.formula})" for row in rows],
    }
    return "\n".join("| " + " | ".join([name, *cells]) + " |" for name, cells in lines.items())


def difference(row: Held) -> str:
    missing = row.tensor_bytes - row.formula_bytes
    return f"{missing:+,} B" if missing else "equal"


def merged_words(merged: Merged) -> str:
    """What was saved and what it cost."""
    (before, after), (loss, damage) = merged.cache_bytes, merged.losses
    table = ["| KV heads | cache | loss per token | perplexity |", "|--:|--:|--:|--:|"]
    for heads, count, nats in ((merged.kv_heads, before, loss), (1, after, damage)):
        table.append(f"| {heads} | {both(count)} | {nats:.3f} nats | {np.exp(nats):,.1f} |")
    lost = f"{abs(damage - loss):.2f} nats per token {'higher' if damage > loss else 'lower'}"
    return "\n".join(table) + (
        f"\n\nMerging {merged.kv_heads} KV heads into one makes the cache {before / after:.3g} times smaller and the "
        f"loss {lost} over {plural(merged.tokens, 'token')}: the number of KV heads is trained into a model and "
        "cannot be changed afterwards without a cost."
    )
