"""Fixtures that more than one test file uses, and which tests share a worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from kvviz.models import Loaded, load

HERE = Path(__file__).parent

if "PYTEST_XDIST_WORKER" in os.environ:  # the cores are shared out among the workers already
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def smollm2() -> Loaded:
    """The real default model in fp32 on the CPU, loaded once."""
    return load(device="cpu", dtype="float32")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share something costly run in one worker; the workers draw all other tests one by one.

    Groups are given out before single tests, so whichever worker ends its group first takes more of those.
    """
    for item in items:
        if group := group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))


def group_of(item: pytest.Item) -> str | None:
    if HERE / "browser" in item.path.parents:
        return "browser"  # one chromium and one server, whose model is in another process
    if item.get_closest_marker("real"):
        return "model"  # SmolLM2, and the results that the pages compute with it
    return None
