"""Write a model as fp32 safetensors with its tokenizer: from a GGUF file, or from the hub."""

from __future__ import annotations

import io
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from kvviz.models.fetch import NotReachable
from kvviz.models.files import file_sha256, is_disk_full
from kvviz.models.table import ModelCard, ModelError

_HUB_FILES = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence the warnings and progress bars of transformers and the hub inside the block."""
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging as ours

    level, hub_level, bars = ours.get_verbosity(), hub.get_verbosity(), ours.is_progress_bar_enabled()
    ours.set_verbosity(logging.CRITICAL)
    hub.set_verbosity(logging.CRITICAL)
    ours.disable_progress_bar()
    try:
        yield
    finally:
        ours.set_verbosity(level)
        hub.set_verbosity(hub_level)
        if bars:
            ours.enable_progress_bar()


def save_from_gguf(card: ModelCard, gguf: Path, folder: Path) -> None:
    """Dequantise ``gguf`` to fp32 and save model and tokenizer into the existing ``folder``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # the GGUF loader draws a progress bar of its own that no setting turns off
    with quiet_transformers(), redirect_stderr(io.StringIO()):
        source: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True}
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **source)
        model: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **source)
        # save_pretrained refuses a model that still calls itself a GGUF one
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        if card.splits_digits:
            _split_digits(tokenizer)
        _save(model, tokenizer, folder)


def save_from_hub(card: ModelCard, folder: Path, spare: Path) -> None:
    """Download the original weights at the pinned revision into ``spare`` and save them as fp32 into ``folder``.

    Raises:
        NotReachable: the hub does not answer.
        ModelError: the downloaded weights are not the expected ones.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with quiet_transformers():
        _hub_download(card, spare)
        found = file_sha256(spare / "model.safetensors")
        if found != card.hub_sha256:
            raise ModelError(
                f"The hub sent other weights for {card.name} than expected (SHA-256 {found[:12]}… instead of "
                f"{card.hub_sha256[:12]}…), so nothing was loaded; start again on another network."
            )
        tokenizer = AutoTokenizer.from_pretrained(spare, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(spare, dtype=torch.float32, local_files_only=True)
        _save(model, tokenizer, folder)
    shutil.rmtree(spare, ignore_errors=True)


def _hub_download(card: ModelCard, folder: Path) -> None:
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(card.hub_repo, revision=card.hub_revision, local_dir=folder, allow_patterns=_HUB_FILES)
    except Exception as error:  # every network library brings its own family of errors
        if is_disk_full(error):
            raise
        raise NotReachable(f"the hub did not answer: {error}") from error


def _split_digits(tokenizer: Any) -> None:
    # transformers rebuilds a plain GPT-2 splitter from the GGUF; SmolLM2 was trained with one token per digit
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    tokenizer.clean_up_tokenization_spaces = False  # decoding must give back the text, spaces and all
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
