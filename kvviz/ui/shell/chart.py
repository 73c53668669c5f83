"""A figure on a page, and the data behind it to download."""

from __future__ import annotations

import streamlit as st

from kvviz.figures import Drawing, Table


def chart(drawing: Drawing, key: str) -> None:
    """The figure without a tool bar, and its sentence for those who do not see it."""
    st.plotly_chart(drawing.figure, key=key, config={"displayModeBar": False}, alt=drawing.alt)


def download(table: Table, key: str) -> None:
    """A button for the data behind a picture; the CSV is written when somebody presses it."""
    st.download_button(
        "Download as CSV",
        table.csv,
        file_name=f"kvviz-{key}.csv",
        mime="text/csv",
        type="tertiary",
        icon=":material/download:",
        key=f"{key}.csv",
    )
