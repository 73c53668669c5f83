"""Prose by language: a folder a language, a Markdown file a page."""

from __future__ import annotations

from functools import cache
from pathlib import Path

LANGUAGE = "en"  # the folder read; chosen here and nowhere else


@cache
def prose(name: str) -> str:
    """What ``name`` says: a page's lesson, the introduction, the glossary."""
    return (Path(__file__).parent / LANGUAGE / f"{name}.md").read_text(encoding="utf-8")
