"""Fixtures that more than one test file uses."""

from __future__ import annotations

import os

import pytest
import torch

from kvviz.models import Loaded, load

if "PYTEST_XDIST_WORKER" in os.environ:  # the cores are shared out among the workers already
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def smollm2() -> Loaded:
    """The real default model in fp32 on the CPU, loaded once."""
    return load(device="cpu", dtype="float32")
