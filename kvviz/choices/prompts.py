"""Sets of prompts that share a beginning, or seem to: chats as a serving engine gets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvviz.choices.texts import LONG_TEXT, PRESETS

RULES = (
    "You are the assistant of a small library. Answer in plain words and in at most three sentences. Say which shelf a "
    "book stands on if you know it, and say so if you do not. Never invent a title."
)
MOST_PROMPTS, MOST_CHARACTERS = 8, 20_000
SEPARATOR = "---"  # a line of its own between pasted prompts


@dataclass(frozen=True)
class PromptSet:
    """Prompts to try, and what is to be seen in them."""

    title: str
    prompts: tuple[str, ...]


def chat(system: str, *turns: str) -> str:
    """A chat as SmolLM2's template writes it; ``turns`` alternate between user and assistant."""
    names = ["user", "assistant"] * len(turns)
    said = [("system", system), *zip(names, turns, strict=False)]
    written = "".join(f"<|im_start|>{name}\n{text}<|im_end|>\n" for name, text in said)
    return f"{written}<|im_start|>assistant\n"


def dated(day: str) -> str:
    return f"Today is {day}. {RULES}"


def long_document() -> str:
    """About 480 tokens."""
    return PRESETS[LONG_TEXT].text()[:1900]


def questions(count: int) -> tuple[str, ...]:
    """One long document and several questions about it."""
    asked = ("name", "statement", "module", "function", "line", "value", "class", "rule")
    return tuple(f"{long_document()}\n\nQuestion: what does it say about a {word}?\nAnswer:" for word in asked[:count])


FIRST, ANSWER, SECOND = "Where is Moby Dick?", "On shelf four.", "And who wrote it?"
PROMPT_SETS = {
    "date": PromptSet(
        "A date at the top of the system message",
        (
            chat(dated("Monday, 14 July"), FIRST),
            chat(dated("Tuesday, 15 July"), FIRST),
            chat(dated("Monday, 14 July"), "Is there anything about whales?"),
        ),
    ),
    "date-last": PromptSet(
        "The date at the end of the system message",
        (
            chat(f"{RULES} Today is Monday, 14 July.", FIRST),
            chat(f"{RULES} Today is Tuesday, 15 July.", FIRST),
            chat(f"{RULES} Today is Monday, 14 July.", "Is there anything about whales?"),
        ),
    ),
    "turns": PromptSet(
        "A chat that grows turn by turn",
        (
            chat(RULES, FIRST),
            chat(RULES, FIRST, ANSWER, SECOND),
            chat(RULES, FIRST, ANSWER, SECOND, "Herman Melville.", "Thank you!"),
        ),
    ),
    "blank": PromptSet("One blank more", (chat(RULES, FIRST), chat(RULES.replace("words and", "words  and"), FIRST))),
    "pieces": PromptSet(
        "The same letters, other tokens",
        (f"{RULES} Question: {FIRST} Answer: ", f"{RULES} Question: {FIRST} Answer: yes, on shelf four."),
    ),
    "order": PromptSet(
        "The question before the document",
        tuple(f"Question: {question}\n\nText: {RULES}\n\nAnswer:" for question in (FIRST, SECOND)),
    ),
    "same": PromptSet("Twice the same prompt", (chat(RULES, FIRST), chat(RULES, FIRST))),
    "document": PromptSet("Eight questions about a long document", questions(8)),
}


def separate(pasted: str) -> list[str]:
    """The prompts of a pasted text, with a line of three dashes between them; none for an empty text.

    Raises ValueError in one sentence for an empty prompt, too many, or too long a text.
    """
    if len(pasted) > MOST_CHARACTERS:
        raise ValueError(
            f"The prompts have {len(pasted):,} characters and at most {MOST_CHARACTERS:,} are read; shorten them."
        )
    found = joined_lines(pasted.replace("\r\n", "\n").split("\n"))
    if found == [""]:
        return []
    if len(found) > MOST_PROMPTS:
        raise ValueError(f"{len(found)} prompts are too many for one picture; give at most {MOST_PROMPTS}.")
    for place, prompt in enumerate(found):
        if not prompt:
            raise ValueError(f"Prompt {place + 1} is empty; write at least one word, or leave its line of dashes out.")
    return found


def joined_lines(lines: Sequence[str]) -> list[str]:
    """What stands between lines of three dashes."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if line.strip() == SEPARATOR:
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(part) for part in parts]
