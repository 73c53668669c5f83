"""Tokens: a text as token ids, and each token as its bytes and as a visible label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from kvviz.text.signs import visible

_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


def encode(tokenizer: Any, text: str, limit: int) -> list[int]:
    """Return the first ``limit`` token ids of ``text``, tokenised once as a whole without template or added tokens.

    Raises:
        ValueError: the text is empty or not encodable, or ``limit`` is below 1.
    """
    if limit < 1:
        raise ValueError(f"The length must be at least 1 token, not {limit}.")
    if not text:
        raise ValueError("The text is empty; write or choose at least one word.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Character {error.start} of the text is half of a surrogate pair; remove it and try again."
        ) from error
    ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return ids[:limit]


def stop_tokens(model: Any, tokenizer: Any) -> set[int]:
    """The end-of-text tokens that the model itself names."""
    named = model.generation_config.eos_token_id
    several = named if isinstance(named, list) else [named]
    return {token for token in (*several, tokenizer.eos_token_id) if token is not None}


def pieces(tokenizer: Any, ids: Sequence[int]) -> list[bytes]:
    """Return the bytes of each token; joined they are the text's UTF-8. An id without a token has no bytes."""
    written = _written(tokenizer)
    to_bytes = _byte_level if _is_byte_level(tokenizer) else _sentence_piece
    names = tokenizer.convert_ids_to_tokens(list(ids))
    parts = [
        written[id_].encode() if id_ in written else b"" if name is None else to_bytes(name)
        for id_, name in zip(ids, names, strict=True)
    ]
    if parts and ids[0] not in written and _adds_space(tokenizer):
        parts[0] = parts[0].removeprefix(b" ")
    return parts


def labels(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Return one visible label per token: ``␣the``, ``↵``, ``⟨E5⟩⟨88⟩``; special tokens as they are written."""
    written = _written(tokenizer)
    return [
        visible(written[id_], keep_spaces=True) if id_ in written else _show(piece) or f"⟨token {id_}⟩"
        for id_, piece in zip(ids, pieces(tokenizer, ids), strict=True)
    ]


def _show(piece: bytes) -> str:
    # surrogateescape keeps each undecodable byte apart, as U+DC80 + byte
    text = piece.decode("utf-8", "surrogateescape")
    parts = re.split("([\udc80-\udcff])", text)
    return "".join(f"⟨{ord(part) - 0xDC00:02X}⟩" if "\udc80" <= part <= "\udcff" else visible(part) for part in parts)


def _written(tokenizer: Any) -> dict[int, str]:
    """Return the added tokens, which are stored as they are written and not as bytes."""
    return {id_: str(token) for id_, token in tokenizer.added_tokens_decoder.items()}


@cache
def _byte_of() -> dict[str, int]:
    """Return GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes for 256, 257, …"""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + rank): byte for rank, byte in enumerate(others)}


def _byte_level(name: str) -> bytes:
    table = _byte_of()
    return b"".join(bytes([table[sign]]) if sign in table else sign.encode() for sign in name)


def _sentence_piece(name: str) -> bytes:
    byte = _BYTE_TOKEN.fullmatch(name)
    return bytes([int(byte[1], 16)]) if byte else name.replace("▁", " ").encode()


def _decoder(tokenizer: Any) -> str:
    """Return the fast tokenizer's decoder as JSON, which names its kind."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    state: bytes = backend.decoder.__getstate__() if backend is not None and backend.decoder is not None else b""
    return state.decode()


def _is_byte_level(tokenizer: Any) -> bool:
    return '"ByteLevel"' in _decoder(tokenizer)


def _adds_space(tokenizer: Any) -> bool:
    # sentence-piece tokenizers may put a space before the text that is not in it
    state = _decoder(tokenizer)
    return '"Strip"' in state or '"prepend_scheme":"always"' in state or '"prepend_scheme":"first"' in state
