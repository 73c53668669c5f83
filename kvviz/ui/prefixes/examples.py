"""Experiments for the Prefixes page, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example

FREE = {"prefix_blocks": "0", "two_answers": "False"}
EXAMPLES = (
    Example(
        "A date breaks everything",
        "The system messages differ in one date near the top: the second prompt shares only what stands before it.",
        {"prompts": "date", "prefix_block": "16", "prefix_part": "saved", **FREE},
    ),
    Example(
        "Put the date last",
        "The same words with the date at the end of the system message: nearly all of it is a hit.",
        {"prompts": "date-last", "prefix_block": "16", **FREE},
    ),
    Example(
        "The same letters, other tokens",
        "The first text ends with a blank and the second goes on from there; but a blank and its word are one token.",
        {"prompts": "pieces", "prefix_block": "1", **FREE},
    ),
    Example(
        "Eight questions, one document",
        "Each prompt after the first reads only its question; the document's blocks are held by all eight.",
        {"prompts": "document", "prefix_block": "16", "prefix_part": "saved", **FREE},
    ),
    Example(
        "Too few blocks",
        "With 30 blocks there is no room for all: old prompts are closed and the leaves unused longest evicted.",
        {"prompts": "document", "prefix_block": "16", "prefix_blocks": "30", "prefix_part": "blocks"}
        | {"two_answers": "False"},
    ),
    Example(
        "Copy on write",
        "Two answers hold the same part-filled block until one of them writes: then it is copied.",
        {"prompts": "same", "prefix_block": "16", "prefix_blocks": "0", "two_answers": "True", "prefix_part": "blocks"},
    ),
)
