"""The supporting parts of the Speed page."""

from __future__ import annotations

import json

import streamlit as st

from kvviz.ui.shell import waiting
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.runs import TOKENS_ON_A_PAGE
from kvviz.ui.shell.state import View
from kvviz.ui.speed.report import Report, report_job
from kvviz.ui.speed.settings import LEAST_PROMPT, MOST_NEW, MOST_REPEATS
from kvviz.ui.speed.steps import Far, Speeds


def draw(part: str, view: View, found: Speeds) -> None:
    """The part that is open."""
    if part == "work":
        draw_work(found)
    else:
        draw_report(view)


def draw_work(found: Speeds) -> None:
    """What a step reads and computes at contexts that are counted, not run."""
    st.markdown(work_words(found))
    header = "| | context | multiplications with weights | with keys and values | cache read |\n|---|--:|--:|--:|--:|\n"
    st.markdown(
        header
        + "\n".join(row(s.side.upper(), far) for s, two in zip(found.steps, found.far, strict=True) for far in two)
    )
    st.caption("Counted by the formulas of the Memory page for one sequence, with the prompt half of the context.")


def work_words(found: Speeds) -> str:
    """What grows with the context, and what the cache spares."""
    parts = []
    for steps, (near, far) in zip(found.steps, found.far, strict=True):
        parts.append(f"{grown(near, far)} under {steps.side.upper()}")
    near, far = found.far[0]
    return (
        f"From {near.tokens:,} to {far.tokens:,} tokens a step reads {' and '.join(parts)} from the cache, "
        "while its multiplications with the weights stay the same: a cache spares projecting the old tokens again, not "
        "reading them."
    )


def grown(near: Far, far: Far) -> str:
    """How many times the bytes of the nearer context the farther one reads."""
    if not near.cache_bytes:
        return "nothing"
    times = far.cache_bytes / near.cache_bytes
    return "just as many bytes" if times == 1 else f"{times:.3g} times as many bytes"


def row(side: str, far: Far) -> str:
    return (
        f"| {side} | {far.tokens:,} | {far.projection_work / 1e6:,.1f} million "
        f"| {far.attention_work / 1e6:,.1f} million | {far.cache_bytes / 2**20:,.1f} MiB |"
    )


def draw_report(view: View) -> None:
    """One run report of A, and two files of it."""
    left, middle, right = st.columns(3)
    try:
        prompt = whole_number(left, "Tokens of the prompt", "report_tokens", 512, LEAST_PROMPT, TOKENS_ON_A_PAGE)
        new = whole_number(middle, "New tokens", "report_new", 32, 2, MOST_NEW)
        repeats = whole_number(right, "Timed runs", "report_repeats", 3, 1, MOST_REPEATS)
    except ValueError as error:
        st.error(str(error))
        return
    key, compute = report_job(view, prompt, new, repeats)
    if not waiting.asked(key, "Make the report of A"):
        return
    if found := waiting.extra(key, compute, st.empty()):
        show_report(found)


def show_report(found: Report) -> None:
    """The report, and both of its files."""
    st.markdown(found.markdown)
    left, right, _ = st.columns([1, 1, 2])
    files = (
        (left, "JSON", json.dumps(found.report, indent=1), "json", "application/json"),
        (right, "Markdown", found.markdown, "md", "text/markdown"),
    )
    for place, word, content, ending, kind in files:
        place.download_button(
            f"Download as {word}", content, f"kvviz-report.{ending}", kind, on_click="ignore", key=f"report.{ending}"
        )
