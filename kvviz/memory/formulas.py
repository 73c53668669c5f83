"""The bytes of a cache, one formula a function: whole numbers in, whole numbers out.

Everything here is arithmetic that a page can print beside its result. Units are in the names: ``tokens`` are entries
held by one sequence in one layer, ``item_bytes`` bytes of one number, and every result is bytes.
"""

from __future__ import annotations

BLOCK_NUMBERS = 32  # numbers that share a scale in the llama.cpp formats
Q8_0_BYTES = 34  # a block of q8_0: 32 codes of one byte and a two-byte scale (ggml, block_q8_0)
Q4_0_BYTES = 18  # a block of q4_0: 32 codes of half a byte and a two-byte scale (ggml, block_q4_0)


def state_bytes(layers: int, layer_bytes: int, batch: int = 1) -> int:
    """L · constant: a linear-attention or state layer holds as much after a million tokens as after one."""
    return layers * layer_bytes * batch


def window_tokens(tokens: int, window: int | None) -> int:
    """min(S, W): what a sliding layer still holds, the newest token included; None = full attention."""
    return tokens if window is None else min(tokens, window)


def pages(tokens: int, page: int = 16) -> int:
    """Tokens rounded up to whole pages: a paged engine hands out memory in blocks (vLLM, 2023: 16 tokens)."""
    return -(-tokens // page) * page


def window_pages(tokens: int, window: int, page: int = 16) -> int:
    """Tokens in the pages that a window of W may touch at its worst alignment, ⌈(W − 1) / page⌉ + 1 pages."""
    return min(pages(tokens, page), (-(-(window - 1) // page) + 1) * page)


def padded_cells(tokens: int, sequences: int = 1, pad: int = 256) -> int:
    """Cells that llama.cpp gives each of its slots for full layers: ⌈context / slots⌉, rounded up to 256."""
    return pages(-(-tokens // sequences), pad)


def window_cells(tokens: int, window: int, sequences: int = 1, batch_tokens: int = 512, pad: int = 256) -> int:
    """Cells of a slot for sliding layers: window and one batch of new tokens, padded, never above the full layers'."""
    return min(padded_cells(tokens, sequences, pad), pages(window + batch_tokens, pad))


def heads_on_gpu(query_heads: int, kv_heads: int, gpus: int) -> int:
    """KV heads on the fullest of ``gpus`` GPUs that share the query heads evenly.

    A KV head is copied to every GPU that has one of its query heads, so more GPUs than KV heads hold one each.
    """
    if query_heads % gpus:
        raise ValueError(
            f"{query_heads} query heads cannot be shared evenly by {gpus} GPUs; choose a divisor of {query_heads}."
        )
    share, group = query_heads // gpus, query_heads // kv_heads
    return max(((gpu + 1) * share - 1) // group - gpu * share // group + 1 for gpu in range(gpus))
