"""The direction of imports (README, "How it is built"), read from the source with ast."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "kvviz").rglob("*.py"))
PAGES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))]


def imports(path: Path) -> set[str]:
    """Every module a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def uses(path: Path, *packages: str) -> set[str]:
    return {name for name in imports(path) if any(name == p or name.startswith(p + ".") for p in packages)}


def under(*parts: str) -> list[Path]:
    return [path for path in FILES if path.relative_to(ROOT / "kvviz").parts[: len(parts)] == parts]


def test_only_ui_knows_streamlit() -> None:
    outside = [path for path in FILES if path not in under("ui")]
    assert {path.name: found for path in outside if (found := uses(path, "streamlit", "kvviz.ui"))} == {}


def test_figures_know_neither_torch_nor_traces() -> None:
    banned = (
        "torch",
        "transformers",
        "kvviz.trace",
        "kvviz.engine",
        "kvviz.replay",
        "kvviz.models",
        "kvviz.experiment",
    )
    assert under("figures")
    assert {path.name: found for path in under("figures") if (found := uses(path, *banned))} == {}


def test_only_figures_and_ui_know_plotly() -> None:
    outside = [path for path in FILES if path not in under("figures") + under("ui")]
    assert {path.name: found for path in outside if (found := uses(path, "plotly", "kvviz.figures"))} == {}


def test_policies_and_measures_stand_below_the_engine() -> None:
    below = (
        under("policies") + under("measures") + [ROOT / "kvviz" / n for n in ("patterns.py", "storage.py", "knobs.py")]
    )
    banned = (
        "kvviz.engine",
        "kvviz.replay",
        "kvviz.generate",
        "kvviz.models",
        "kvviz.attention",
        "kvviz.cache",
        "transformers",
    )
    assert {path.name: found for path in below if (found := uses(path, *banned))} == {}


def test_only_one_file_subclasses_a_transformers_cache_and_one_passes_it() -> None:
    assert [p.name for p in FILES if uses(p, "transformers.cache_utils", "transformers.Cache")] == ["cache.py"]
    assert [p.name for p in FILES if "cache=self.cache" in p.read_text(encoding="utf-8")] == ["engine.py"]


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_pages_are_thin(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80
    assert not uses(path, "torch", "transformers", "kvviz.engine", "kvviz.cache", "kvviz.attention")


# the exact reach and the gradients are torch through and through
DRAWN_FIRST = [path for path in PAGES if path.name != "3_Receptive_field.py"]


@pytest.mark.parametrize("path", DRAWN_FIRST, ids=lambda path: path.name)
def test_settings_can_be_drawn_before_torch_is_there(path: Path) -> None:
    """Importing it takes seconds; the settings of a page do not wait for it."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    own = "\n".join(ast.unparse(node) for node in body if isinstance(node, (ast.Import, ast.ImportFrom)))
    ask = f"import sys\n{own}\nsys.exit(bool({{'torch', 'transformers'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", ask], cwd=ROOT, check=False).returncode == 0
