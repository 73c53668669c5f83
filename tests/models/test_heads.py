from __future__ import annotations

import pytest

from kvviz.models.heads import group_of, kv_head_of


@pytest.mark.parametrize(
    ("query_heads", "kv_heads", "expected"),
    [
        (9, 3, [0, 0, 0, 1, 1, 1, 2, 2, 2]),
        (14, 2, [0] * 7 + [1] * 7),
        (8, 8, list(range(8))),
        (4, 1, [0] * 4),
    ],
)
def test_query_heads_read_kv_heads_in_order(query_heads: int, kv_heads: int, expected: list[int]) -> None:
    """Known fault 144: the KV head of a query head is computed wrongly under GQA."""
    assert [kv_head_of(head, query_heads, kv_heads) for head in range(query_heads)] == expected


@pytest.mark.parametrize(("query_heads", "kv_heads"), [(9, 2), (8, 3), (4, 0)])
def test_uneven_sharing_is_refused_with_the_numbers(query_heads: int, kv_heads: int) -> None:
    """Known fault 145: heads that do not divide are spread silently."""
    with pytest.raises(ValueError, match=f"{query_heads} query heads cannot share {kv_heads} KV heads evenly"):
        group_of(query_heads, kv_heads)
