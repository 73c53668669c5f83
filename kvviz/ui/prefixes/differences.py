"""Where a prompt breaks and why: the first token that differs, its neighbours, and the reason in plain words."""

from __future__ import annotations

import html
from dataclasses import dataclass

from kvviz.figures.theme import ACCENT
from kvviz.ui.prefixes.run import Shared
from kvviz.ui.shell.words import plural

AROUND = 4  # tokens on both sides of the first that differs


@dataclass(frozen=True)
class Break:
    """One prompt beside the earlier one that it shares most with, both by index."""

    prompt: int
    other: int
    shared: int
    position: int | None


def breaks(shared: Shared) -> list[Break]:
    """Of every prompt but the first."""
    found = []
    for place, one in enumerate(shared.sharing.prompts):
        if one.difference is not None:
            found.append(Break(place, one.difference.other, one.difference.shared, one.difference.position))
    return found


def neighbours(shared: Shared, prompt: int, position: int) -> tuple[str, str, str]:
    """The tokens before, the one at the position, and those after it, as they are shown."""
    labels = shared.labels[prompt]
    before = "".join(labels[max(0, position - AROUND) : position])
    start = "…" if position > AROUND else ""
    rest = labels[position + 1 : position + 1 + AROUND]
    end = "…" if position + 1 + AROUND < len(labels) else ""
    return start + before, labels[position], "".join(rest) + end


def reason(shared: Shared, one: Break) -> str:
    """Why the prompt was a hit no further, in plain words."""
    block = shared.sharing.block
    if one.position is None:
        return ended_words(shared, one)
    mine, other = (shared.pieces[place][one.position] for place in (one.prompt, one.other))
    said = kind_of_difference(shared, one, mine, other)
    if one.position == 0:
        return f"{said} It is the very first token, so nothing can be shared."
    hits = shared.sharing.prompts[one.prompt].hit_tokens
    if gone := evicted_words(shared, one):
        return f"{said} {gone}"
    lost = max(0, one.shared - hits)  # an answer to another prompt may have been a hit beyond it
    if hits == 0:
        return f"{said} The {plural(one.shared, 'equal token')} before it do not fill a block of {block}: no hit."
    part = f", {plural(lost, 'equal token')} more {'does' if lost == 1 else 'do'} not fill another one" if lost else ""
    return f"{said} Hits are the {hits} tokens in whole blocks of {block} before it{part}."


def evicted_words(shared: Shared, one: Break) -> str:
    """That whole blocks of the common beginning had to leave before the prompt came; empty where none did."""
    served, block = shared.sharing.prompts[one.prompt], shared.sharing.block
    whole = min(one.shared, served.tokens - 1) // block * block
    if served.hit_tokens >= whole:
        return ""
    return (
        f"{whole} of the {plural(one.shared, 'equal token')} fill whole blocks of {block}, but "
        f"{whole - served.hit_tokens} of those had been evicted for want of room: {served.hit_tokens} were hits."
    )


def ended_words(shared: Shared, one: Break) -> str:
    """Of two prompts one of which is the beginning of the other."""
    mine, other = len(shared.tokens[one.prompt]), len(shared.tokens[one.other])
    block, hits = shared.sharing.block, shared.sharing.prompts[one.prompt].hit_tokens
    gone = evicted_words(shared, one)
    rule = f"{hits} of its {mine} tokens were hits: whole blocks of {block} only, and the last token is always computed"
    if mine == other:
        return f"It is the same prompt once more. {gone or f'{rule}, for its answer is wanted.'}"
    if mine < other:
        return f"It is the beginning of prompt {one.other + 1}. {gone or f'{rule}.'}"
    return f"It goes on where prompt {one.other + 1} ends, so all of that could be shared. {gone or f'{rule}.'}"


def kind_of_difference(shared: Shared, one: Break, mine: str, other: str) -> str:
    """What sort of difference it is, from the text of both."""
    assert one.position is not None
    rest, rest_other = (
        "".join(shared.pieces[place][one.position : one.position + AROUND]) for place in (one.prompt, one.other)
    )
    longest = max(len(mine), len(other))
    if rest[:longest] == rest_other[:longest] or rest.startswith(rest_other) or rest_other.startswith(rest):
        return "The letters are the same and the tokens are not: the text was cut into other pieces."
    if mine.strip() == other.strip() or not mine.strip() or not other.strip():
        return "Only white space differs: a blank or a line break more or less makes another token."
    if any(sign.isdigit() for sign in mine + other):
        return "A number differs, as in a date, a time or an identifier."
    if mine.lower() == other.lower():
        return "Only capital letters differ."
    return "Another word stands there."


def chosen_break(shared: Shared, prompt: int | None) -> Break | None:
    """The prompt's that is chosen (counted from 1); else the first in which a token differs, or simply the first."""
    found = breaks(shared)
    wanted = [one for one in found if prompt is not None and one.prompt + 1 == prompt]
    differing = [one for one in found if one.position is not None]
    return next(iter([*wanted, *differing, *found]), None)


def title(shared: Shared, one: Break) -> str:
    """What is compared, in numbers."""
    served = shared.sharing.prompts[one.prompt]
    return (
        f"Prompt {one.prompt + 1} beside prompt {one.other + 1}: {one.shared} of {served.tokens} tokens are equal, "
        f"{served.hit_tokens} were hits."
    )


def sides(shared: Shared, one: Break) -> str:
    """Both sides of the break one below the other, as HTML: every token escaped, the differing ones marked."""
    if one.position is None:
        return ""
    rows = "".join(side(shared, place, one.position) for place in (one.other, one.prompt))
    return f'<div style="font-family:monospace;line-height:2.1;overflow-wrap:anywhere">{rows}</div>'


def side(shared: Shared, prompt: int, position: int) -> str:
    before, at, after = (html.escape(part) for part in neighbours(shared, prompt, position))
    mark = f'<b style="border-bottom:3px solid {ACCENT["b"]};padding:0 2px">{at}</b>'
    return f"<div>prompt {prompt + 1} · token {position}: {before}{mark}{after}</div>"
