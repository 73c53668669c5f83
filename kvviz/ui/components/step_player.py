"""The cache one step at a time: what is in the slots, what entered, what left."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.ui.components.assets import component

TOKENS_LIMIT = 65_535  # steps travel as 16-bit numbers
_player = component("step_player", "step_player.js", "step_player_draw.js", "step_player.css", "step_player_text.css")


def step_player(
    tokens: Sequence[str],
    evicted_at: NDArray[np.integer],
    *,
    heads: Sequence[str] | None = None,
    count_from: int = 0,
    prompt_tokens: int | None = None,
    start_step: int | None = None,
    start_head: int = 0,
    budget: int | None = None,
    ring: bool = False,
    roles: NDArray[np.uint8] | None = None,
    side: theme.Side = "a",
    key: str = "step_player",
) -> None:
    """Show the slots of the cache after each step, with buttons, a scrubber and keys to go through the steps.

    After step t head h holds {j : j ≤ t < evicted_at[h, j]}; ``evicted_at`` is (H, T), one row for each of ``heads``,
    and T stands for a token that never leaves. ``tokens`` are the T visible texts, not escaped. Slots lie in position
    order, or with ``ring`` at number mod ``budget``, where a number is the position counted from ``count_from``.
    ``roles`` (T, T) are codes of ``figures.role_codes``, row = step. ``start_step`` (counted from 0) is shown first and
    whenever it changes; None is the first step at which something leaves. ``start_head`` is likewise the head shown
    first and whenever it changes. Otherwise the step a reader chose stays over
    reruns and, cut to the length of the text, over new data, as long as ``key`` stays.
    """
    lifetimes = np.atleast_2d(evicted_at)
    count = len(tokens)
    if lifetimes.shape[1] != count:
        raise ValueError(f"{lifetimes.shape[1]} lifetimes do not fit {count} tokens; give one for each token.")
    if not 1 <= count <= TOKENS_LIMIT:
        raise ValueError(f"The player shows 1 to {TOKENS_LIMIT} tokens, not {count}.")
    data: dict[str, Any] = {
        "tokens": list(tokens),
        "lifetimes": packed(lifetimes, count),
        "heads": list(heads or [f"head {head}" for head in range(len(lifetimes))]),
        "countFrom": count_from,
        "promptTokens": prompt_tokens,
        "startStep": start_step,
        "startHead": start_head,
        "budget": budget,
        "ring": ring and budget is not None,
        "side": side,
        "roles": None if roles is None else role_changes(roles, lifetimes.max(axis=0)),
        "roleLabels": [role.label for role in theme.ROLES],
    }
    _player(key=key, data=data)


def packed(lifetimes: NDArray[np.integer], count: int) -> str:
    """(H, T) steps as base64 of little-endian 16-bit numbers, row after row: 4 KiB for 3 heads of 512 tokens."""
    return base64.b64encode(np.clip(lifetimes, 0, count).astype("<u2").tobytes()).decode()


def role_changes(roles: NDArray[np.uint8], until: NDArray[np.integer]) -> list[list[int]]:
    """For every token the steps at which its role changes and the roles: [step, code, step, code, …].

    ``until`` (T,) is the first step at which no head holds the token any more. A token has one or two roles in its
    life, so this is O(T) where the (T, T) codes are O(T²), and loses nothing that is shown.
    """
    changes = []
    for token, codes in enumerate(np.ascontiguousarray(roles.T)):
        life = codes[token : max(until[token], token + 1)].astype(np.int64)
        starts = np.flatnonzero(np.diff(life, prepend=-1))
        changes.append(np.stack([starts + token, life[starts]], axis=1).ravel().tolist())
    return changes
