"""Codes of few bits: hand-worked groups, constants, packing, and how far off a number can be."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from kvviz.cache import quantise
from kvviz.cache.quantise import (
    decode_keys,
    decode_values,
    encode_keys,
    encode_values,
    pack,
    unpack,
)

BITS = (2, 4, 8)


def test_a_hand_worked_block_of_keys() -> None:
    """Channel 0 holds 0, 1, 2, 3: two bits are enough. Channel 1 holds 0, 0, 1, 9: step 3, so 1 becomes 0."""
    block = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [3.0, 9.0]]])
    codes = encode_keys(block, 2)
    assert codes.scale.tolist() == [[1.0, 3.0]] and codes.low.tolist() == [[0.0, 0.0]]
    assert codes.packed.tolist() == [[0b00_01_00_00, 0b11_11_00_10]]  # the first code in the lowest bits
    assert decode_keys(codes, 2, 4)[0].tolist() == [[0, 0], [1, 0], [2, 0], [3, 9]]


def test_a_hand_worked_value() -> None:
    """Groups of two channels: (−1, 2) and (5, 5) and a last group of one."""
    value = torch.tensor([[-1.0, 2.0, 5.0, 5.0, 7.0]])
    codes = encode_values(value, 2, 2)
    assert codes.scale.tolist() == [[1.0, 0.0, 0.0]] and codes.low.tolist() == [[-1.0, 5.0, 7.0]]
    assert codes.packed.shape == (1, 2)
    assert torch.equal(decode_values(codes, 2, 2, 5), value)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_constant_groups_come_back_exactly(bits: int, dtype: torch.dtype) -> None:
    constant = torch.full((3, 5), 0.1234567, dtype=dtype)
    assert torch.equal(decode_values(encode_values(constant, bits, 2), bits, 2, 5), constant)
    blocks = torch.randn(2, 1, 5).to(dtype).expand(-1, 4, -1)  # every channel constant over its block
    assert torch.equal(decode_keys(encode_keys(blocks, bits), bits, 4), blocks)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("count", [1, 3, 4, 7, 8, 33])
def test_unpacking_undoes_packing(bits: int, count: int) -> None:
    codes = torch.randint(0, 2**bits, (5, count), dtype=torch.uint8)
    packed = pack(codes, bits)
    assert packed.shape == (5, -(-count * bits // 8))
    assert torch.equal(unpack(packed, bits, count), codes)


@pytest.mark.parametrize("bits", BITS)
def test_no_number_is_further_off_than_half_a_step(bits: int) -> None:
    generator = torch.Generator().manual_seed(1)
    blocks = torch.randn(6, 32, 16, generator=generator, dtype=torch.float64)
    codes = encode_keys(blocks, bits)
    assert ((decode_keys(codes, bits, 32) - blocks).abs() <= codes.scale[:, None] / 2 + 1e-12).all()
    values = blocks.flatten(0, 1)
    coded = encode_values(values, bits, 8)
    limit = coded.scale.repeat_interleave(8, 1) / 2 + 1e-12
    assert ((decode_values(coded, bits, 8, 16) - values).abs() <= limit).all()


def test_coding_again_changes_nothing_more() -> None:
    blocks = torch.randn(4, 8, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    once = decode_keys(encode_keys(blocks, 4), 4, 8)
    assert (decode_keys(encode_keys(once, 4), 4, 8) - once).abs().max() < 1e-14


def test_the_quantiser_is_plain_torch() -> None:
    """No package that quantises caches, whose next release may break it.

    Known fault 31: the quantiser is another package, and its next release breaks the cache.
    """
    tree = ast.parse(Path(quantise.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= {"__future__", "typing", "torch", "kvviz"}


@pytest.mark.parametrize(("dtype", "steps"), [(torch.float32, 0.501), (torch.bfloat16, 1.1)])
def test_how_many_steps_an_int8_number_may_be_off(dtype: torch.dtype, steps: float) -> None:
    """In bfloat16 the scale is rounded to 8 bits and so is what comes back: about one step, as a note says."""
    values = torch.randn(200, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    codes = encode_values(values, 8, 32)
    error = (decode_values(codes, 8, 32, 64).float() - values.float()).abs().view(200, 2, 32).amax(-1)
    worst = float((error / codes.scale.float()).max())
    assert steps / 2.5 < worst <= steps
