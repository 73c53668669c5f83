"""Fixtures that more than one test file uses, and which tests share a worker."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share something costly run in one worker; the workers draw all other tests one by one.

    Groups are given out first, the one with most tests before the others, so whichever worker ends its group earlier
    takes more of the rest. By files and not by the marker xdist_group, which this pytest does not pass on to xdist.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.partition("::")[0]) or nodeid

    return Groups(config, log)


@cache
def group_of(file: str) -> str | None:
    """The group of a test file, named from the root; None for a file whose tests share nothing."""
    path = HERE.parent / file
    if HERE / "browser" in path.parents:
        return "browser"  # one chromium and one server, whose model is in another process
    if "pytest.mark.real" not in path.read_text(encoding="utf-8"):
        return None
    if HERE / "ui" in path.parents:
        return "pages"  # SmolLM2, and the results that one page computes and the next one finds
    return file  # what is computed with SmolLM2 for all tests of the file
