from __future__ import annotations

import torch

from kvviz.choices.setup import Setup
from kvviz.policies.random import Random, mix
from kvviz.run.engine import Pass
from tests.tiny import some_ids, tiny

MASK = 2**64 - 1


def splitmix64(x: int) -> int:
    """The published finaliser in plain unsigned arithmetic."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def test_the_hash_is_splitmix64() -> None:
    # the first output of the reference generator seeded with 0
    assert splitmix64(0) == 0xE220A8397B1DCDAF
    values = [0, 1, 2, 12345, 2**31 - 1, -1]
    mine = mix(torch.tensor(values)).tolist()
    assert [m & MASK for m in mine] == [splitmix64(v & MASK) for v in values]


def naive_rank(seed: int, layer: int, head: int, position: int) -> int:
    x = splitmix64(seed)
    for part in (layer, head, position):
        x = splitmix64((x + part) & MASK)
    return (x >> 1) if x < 2**63 else -((2**64 - x + 1) // 2)  # arithmetic shift of the signed value


def test_kept_sets_follow_the_naive_rule() -> None:
    tokens, budget, seed = 30, 5, 11
    done = Pass(tiny("llama"), Setup(Random(budget, seed)), prompt_tokens=1)
    done.feed(some_ids(tokens))
    evicted_at = done.evicted_at()
    for layer in range(3):
        for head in range(2):
            held: list[int] = []
            for step in range(tokens):
                older = sorted(held, key=lambda j: naive_rank(seed, layer, head, j), reverse=True)
                held = sorted([*older[: budget - 1], step])
                alive = [j for j in range(step + 1) if evicted_at[layer, head, j] > step]
                assert alive == held


def test_layers_heads_and_seeds_draw_their_own_sets() -> None:
    def kept(seed: int) -> torch.Tensor:
        done = Pass(tiny("llama"), Setup(Random(8, seed)), prompt_tokens=1)
        done.feed(some_ids(40))
        return done.evicted_at() == 40

    first = kept(0)
    assert not torch.equal(first[0, 0], first[0, 1]) and not torch.equal(first[0, 0], first[1, 0])
    assert not torch.equal(first, kept(1)) and torch.equal(first, kept(0))
