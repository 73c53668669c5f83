"""The arithmetic needs no package: only what asks a policy, or reads the command line, may know more."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.test_imports import imports, under

WITH_POLICIES = {"keeping.py", "command.py"}
ALLOWED = ("kvviz.memory", "kvviz.storage", "kvviz.knobs")


@pytest.mark.parametrize("path", under("memory"), ids=lambda path: path.name)
def test_only_the_standard_library(path) -> None:
    if path.name in WITH_POLICIES:
        return
    foreign = {name for name in imports(path) if name.partition(".")[0] not in sys.stdlib_module_names}
    assert not {name for name in foreign if name != "kvviz" and not name.startswith(ALLOWED)}


def test_counting_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys, kvviz.memory; print([name for name in ('torch', 'numpy', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
