"""Fixtures that more than one test file uses."""

from __future__ import annotations

import pytest

from kvviz.models import Loaded, load


@pytest.fixture(scope="session")
def smollm2() -> Loaded:
    """The real default model in fp32 on the CPU, loaded once."""
    return load(device="cpu", dtype="float32")
