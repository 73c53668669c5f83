"""Load a model by name, checked and quiet."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvviz.models.convert import quiet_transformers
from kvviz.models.fetch import Progress
from kvviz.models.files import first_line, plain_errors
from kvviz.models.place import choose_device, choose_dtype
from kvviz.models.store import cache_folder, ready_folder
from kvviz.models.table import DEFAULT_MODEL, MODELS, ModelCard, ModelError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ALLOW_MODELS = "KVVIZ_ALLOW_MODELS"


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model ready to run: in eval mode, without gradients, on ``device`` in ``dtype``.

    ``origin`` is one sentence saying where the weights came from.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    card: ModelCard
    device: torch.device
    dtype: torch.dtype
    origin: str


def load(
    name: str = DEFAULT_MODEL,
    *,
    dtype: str | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """Load a model of the table, or one that ``KVVIZ_ALLOW_MODELS`` allows (a local folder or a hub name).

    ``progress`` is called with what happens now and the share done, 0 to 1. Nothing is kept between calls.

    Raises:
        ModelError: the name, device or dtype is unknown, or the weights cannot be had.
    """
    report = progress or (lambda what, share: None)
    place = choose_device(device)
    number = choose_dtype(dtype, place)
    if name in MODELS:
        loaded = _load_known(MODELS[name], number, place, report)
    else:
        loaded = _load_allowed(_allowed(name), number, place, report)
    report("ready", 1.0)
    return loaded


def _load_known(card: ModelCard, dtype: torch.dtype, device: torch.device, report: Progress) -> Loaded:
    folder, origin = ready_folder(card, report)
    report("reading the weights", 0.9)
    try:
        model, tokenizer = _read(folder, dtype, local=True)
    except (OSError, ValueError, RuntimeError):
        # another process may have replaced the folder between the check and the reading
        with plain_errors(card, cache_folder()):
            folder, origin = ready_folder(card, report)
            model, tokenizer = _read(folder, dtype, local=True)
    return Loaded(_settle(model, card.name, device), tokenizer, card, device, dtype, origin)


def _load_allowed(name: str, dtype: torch.dtype, device: torch.device, report: Progress) -> Loaded:
    report(f"reading {name}", 0.1)
    local = Path(name).is_dir()
    kind = "a folder" if local else "a reachable hub name"
    if local and not (Path(name) / "config.json").is_file():
        raise ModelError(f"The folder {name!r} holds no config.json, so there is no model to load in it.")
    if not local and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise ModelError(f"There is no folder {name!r}; give the path of a folder with a model, or a hub name.")
    try:
        model, tokenizer = _read(name, dtype, local=local)
    except Exception as error:  # a foreign folder can fail in any way; the reader needs one sentence
        raise ModelError(
            f"The model {name!r} could not be loaded ({first_line(error)}); it must be {kind} with a config, "
            "a tokenizer and safetensors weights of a causal language model."
        ) from error
    source = f"the local folder {name}" if local else f"the model hub, {name}"
    if getattr(model.config, "auto_map", None):
        source += (
            f"; its own code (auto_map) was not run, transformers' {type(model).__name__} stands in for it, and may "
            "compute something else"
        )
    card = ModelCard(
        name=name,
        title=name,
        parameters=model.num_parameters(),
        licence="see the model's own terms",
        licence_url="",
        attribution=name,
        weights_note=f"weights from {source}",
    )
    return Loaded(_settle(model, name, device), tokenizer, card, device, dtype, f"{name}: weights from {source}.")


def _read(source: str | Path, dtype: torch.dtype, *, local: bool) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    safe: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
    with quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(source, clean_up_tokenization_spaces=False, **safe)
        answer: Any = AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype, use_safetensors=True, output_loading_info=True, **safe
        )
    model, report = answer
    if missing := sorted(report["missing_keys"]):
        raise ValueError(f"{len(missing)} weights are missing, {missing[0]} first")
    return model, tokenizer


def _settle(model: Any, name: str, device: torch.device) -> Any:
    try:
        return model.to(device).eval().requires_grad_(False)
    except RuntimeError as error:  # out of memory and driver trouble alike
        raise ModelError(
            f"{name} could not be put on the device {str(device)!r} ({first_line(error)}); set KVVIZ_DEVICE=cpu."
        ) from error


def check_name(name: str) -> str:
    """Return the name of a model that may be loaded: one of the table, or one that ``KVVIZ_ALLOW_MODELS`` allows.

    Raises:
        ModelError: it is neither.
    """
    return name if name in MODELS else _allowed(name)


def _allowed(name: str) -> str:
    entries = [entry.strip() for entry in os.environ.get(ALLOW_MODELS, "").split(",") if entry.strip()]
    for entry in entries:
        same_folder = Path(entry).is_dir() and Path(name).is_dir() and Path(entry).samefile(name)
        if entry == name or same_folder:
            return entry
    choices = [*MODELS, *entries]
    likely = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    hint = f" (did you mean {likely[0]}?)" if likely else ""
    raise ModelError(
        f"The model {name!r} is not among the choices: {', '.join(choices)}{hint}; "
        f"whoever runs kvviz can allow another hub name or folder in {ALLOW_MODELS}."
    )
