"""The Prefixes page's own settings; pasted prompts travel in the link like a text."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.linked_text import Text, unpack
from kvviz.choices.prompts import MOST_PROMPTS, PROMPT_SETS
from kvviz.choices.words import number_parser, one_of, yes_or_no
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PASTE, PageSettings, linked

PARTS = {
    "blocks": "Blocks and reference counts",
    "saved": "Bytes and work saved",
    "equal": "Equal to a fresh run?",
}
MOST_BLOCK, MOST_BLOCKS, MOST_STEPS = 256, 10_000, 999


def pasted_word(word: str) -> str:
    """Undo ``Text.spell``."""
    if not word.startswith("z:"):
        raise ValueError("The prompts in this link are damaged or too long to travel in it; paste them again.")
    return unpack(word[2:])


@dataclass(frozen=True)
class PrefixesSettings(PageSettings):
    """Which prompts, how large the blocks are and how many there may be, and what is shown."""

    part: str = part_setting("prefix_part", PARTS)
    chosen: str = linked("prompts", "date", one_of("set of prompts", (*PROMPT_SETS, PASTE)))
    pasted: str = linked("own_prompts", "", pasted_word)
    block: int = linked("prefix_block", 16, number_parser("prefix_block", 1, MOST_BLOCK))
    limit: int = linked("prefix_blocks", 0, number_parser("prefix_blocks", 0, MOST_BLOCKS))  # 0: no limit
    forks: bool = linked("two_answers", False, yes_or_no("two_answers"))
    prompt: int | None = linked("prefix_prompt", None, number_parser("prefix_prompt", 2, MOST_PROMPTS))
    step: int | None = linked("prefix_step", None, number_parser("prefix_step", 0, MOST_STEPS))

    def words(self) -> dict[str, str]:
        words = super().words()
        if "own_prompts" in words:
            words["own_prompts"] = Text(self.pasted).spell()
        if words.get("prompts") != PASTE or not words.get("own_prompts", "").startswith("z:"):
            words.pop("own_prompts", None)  # too long for a link: whoever opens it pastes them again
        return words
