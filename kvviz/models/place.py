"""Which device and which number format a model gets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kvviz.models.table import ModelError

if TYPE_CHECKING:
    import torch  # imported inside the functions: the table of models must be cheap to import

DTYPES = ("float32", "bfloat16", "float16", "float64")
_SHORT = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp64": "float64"}


def choose_device(name: str | None = None) -> torch.device:
    """Return the device: ``name``, else ``KVVIZ_DEVICE``, else cuda, then mps, then cpu.

    Raises:
        ModelError: the device is unknown, or this machine has no such device.
    """
    import torch

    wanted = (name or os.environ.get("KVVIZ_DEVICE") or "").strip().lower()
    choices = _devices()
    if not wanted:
        return torch.device(choices[0])
    if wanted in choices:
        return torch.device(wanted)
    kind, _, number = wanted.partition(":")
    if kind == "cuda" and "cuda" in choices and number.isdecimal() and int(number) < torch.cuda.device_count():
        return torch.device(wanted)
    raise ModelError(
        f"The device {wanted!r} is not available here; set KVVIZ_DEVICE (or --device) to one of: {', '.join(choices)}."
    )


def choose_dtype(name: str | None, device: torch.device) -> torch.dtype:
    """Return the number format: ``name``, else bfloat16 on a GPU and float32 on a CPU.

    Raises:
        ModelError: the format is unknown, or the device cannot compute in it.
    """
    import torch

    if name is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    wanted = name.strip().lower().removeprefix("torch.")
    wanted = _SHORT.get(wanted, wanted)
    if wanted not in DTYPES:
        raise ModelError(f"The dtype {name!r} is unknown; choose one of: {', '.join(DTYPES)}.")
    if device.type == "mps" and wanted == "float64":
        raise ModelError("The device 'mps' has no float64; choose float32, or run on the CPU with KVVIZ_DEVICE=cpu.")
    dtype: torch.dtype = getattr(torch, wanted)
    return dtype


def _devices() -> list[str]:
    import torch

    found = ["cuda"] if torch.cuda.is_available() else []
    if torch.backends.mps.is_available():
        found.append("mps")
    return [*found, "cpu"]
