"""A figure on a page, and a quiet menu with the numbers behind it."""

from __future__ import annotations

import streamlit as st

from kvviz.figures import Drawing, Table
from kvviz.ui.shell.words import plain

ROWS, COLUMNS = 6, 5  # of a table that its menu shows; the file has all


def show(drawing: Drawing, key: str) -> None:
    """A figure with its alt text, and its numbers; ``key`` is its name, on the buttons and of the file."""
    chart(drawing, key)
    numbers(drawing.table, key)


def chart(drawing: Drawing, key: str) -> None:
    """The figure without a tool bar, and its sentence for those who do not see it."""
    st.plotly_chart(drawing.figure, key=key, config={"displayModeBar": False}, alt=drawing.alt)


def numbers(table: Table, key: str) -> None:
    """A menu with the first rows of a table and a button for the whole; the file is written when somebody presses it.

    To run the page again at a download would lose a second one that follows within half a second.
    """
    name = key.replace("-", " ")
    with st.popover(f"Numbers: {name}", type="tertiary", icon=":material/table:", key=f"{key}.numbers"):
        st.download_button(
            f"Download {name} as CSV",
            table.file,
            file_name=f"kvviz-{key}.csv",
            mime="text/csv",
            icon=":material/download:",
            key=f"{key}.csv",
            on_click="ignore",
        )
        st.markdown(preview(table))
        if rest := rest_words(table):
            st.caption(rest)


def preview(table: Table) -> str:
    """The first rows and columns, for Markdown."""
    header, *rows = [list(map(plain, row)) for row in table.head(ROWS, COLUMNS)]
    lines = [header, ["--:"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rest_words(table: Table) -> str:
    """How much more the file has."""
    rows, columns = table.height, len(table.header)
    if rows <= ROWS and columns <= COLUMNS:
        return ""
    shown = f"{min(rows, ROWS)} of {rows:,} rows and {min(columns, COLUMNS)} of {columns:,} columns"
    return f"The first {shown}; the file has all of them."
