"""The direction of imports (README, "How it is built"), read from the source with ast: no arrow upwards, no circle.

Every import counts, wherever it stands: inside a function and behind TYPE_CHECKING too.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import kvviz

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "kvviz").rglob("*.py"))
PAGES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))]

# which rooms of kvviz each room may import
ROOMS: dict[str, set[str]] = {
    "text": set(),
    "knobs": set(),
    "models": {"text"},
    "policies": {"knobs", "text"},
    "choices": {"knobs", "text", "policies", "models"},
    "measures": {"choices", "policies", "knobs", "text"},
    "figures": {"text", "measures"},
    "memory": {"choices", "knobs", "policies", "text"},
    "cache": {"choices", "knobs", "models"},
    "eviction": {"cache", "choices", "policies", "models"},
    "run": {"eviction", "cache", "measures", "choices", "policies", "models", "knobs", "text"},
    "analysis": {"memory", "run", "eviction", "cache", "measures", "choices", "policies", "models", "knobs", "text"},
    "cli": {"analysis", "run", "measures", "memory", "choices", "policies", "models", "knobs", "text"},
    "ui": {"analysis", "run", "measures", "memory", "figures", "choices", "policies", "models", "knobs", "text"},
    "__main__": {"cli"},
}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{path} has a relative import, which these tests do not read"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def uses(path: Path, *packages: str) -> set[str]:
    return {name for name in imports(path) if any(name == p or name.startswith(p + ".") for p in packages)}


def under(*parts: str) -> list[Path]:
    return [path for path in FILES if path.relative_to(ROOT / "kvviz").parts[: len(parts)] == parts]


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "kvviz").with_suffix("").parts[0]


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_room_imports_only_those_below_it(path: Path) -> None:
    room = room_of(path)
    used = {name.split(".")[1] for name in uses(path, "kvviz") if name.count(".")}
    allowed = ROOMS.get(room, set()) | {room, "__version__"}
    assert used <= allowed, f"{module_of(path)} imports {sorted(used - allowed)}"


def test_the_table_of_rooms_has_no_circle_and_forgets_none() -> None:
    list(TopologicalSorter(ROOMS).static_order())  # raises CycleError
    assert {room_of(path) for path in FILES} - {"__init__"} == set(ROOMS)


def test_no_circle_among_modules() -> None:
    graph = {}
    for name, path in MODULES.items():
        found = {used for used in imports(path) if used in MODULES and used != name}
        # "from package import module" needs the module; the package itself only where a name of its own is taken
        packages = {used for used in found if any(other.startswith(used + ".") for other in found)}
        graph[name] = found - packages
    list(TopologicalSorter(graph).static_order())


def test_every_room_says_what_it_is_for() -> None:
    for path in FILES:
        if path.name == "__init__.py" and path.parent != ROOT / "kvviz":
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            assert said, f"{module_of(path)} has no sentence"


def test_the_root_has_few_entries() -> None:
    entries = [entry for entry in (ROOT / "kvviz").iterdir() if not entry.name.startswith((".", "__pycache__"))]
    assert len(entries) <= 16
    assert {entry.name for entry in entries if entry.is_file()} == {"__init__.py", "__main__.py"}
    assert kvviz.__version__


def test_the_shell_knows_no_page() -> None:
    """Pages import the shell; it learns of them from the table it is handed."""
    folders = [path.parent.name for path in (ROOT / "kvviz" / "ui").glob("*/__init__.py")]
    pages = [f"kvviz.ui.{name}" for name in folders if name not in ("shell", "components")]
    assert len(pages) >= 6
    assert {path: found for path in under("ui", "shell") if (found := uses(path, "kvviz.ui.pages", *pages))} == {}


def test_only_ui_knows_streamlit_and_only_figures_and_ui_know_plotly() -> None:
    assert {path: found for path in FILES if room_of(path) != "ui" and (found := uses(path, "streamlit"))} == {}
    outside = [path for path in FILES if room_of(path) not in ("ui", "figures")]
    assert {path: found for path in outside if (found := uses(path, "plotly"))} == {}


def test_what_decides_about_the_url_touches_neither_session_nor_url() -> None:
    assert not uses(ROOT / "kvviz/ui/shell/reconcile.py", "streamlit", "kvviz")


def test_figures_and_rooms_of_choices_know_no_transformers() -> None:
    below = [path for room in ("figures", "policies", "choices", "knobs", "text", "measures") for path in under(room)]
    assert {path: found for path in below if (found := uses(path, "transformers"))} == {}
    assert {path: found for path in under("figures") if (found := uses(path, "torch"))} == {}


def test_only_one_file_subclasses_a_transformers_cache_and_one_passes_it() -> None:
    assert [p.name for p in FILES if uses(p, "transformers.cache_utils", "transformers.Cache")] == ["slots.py"]
    assert [p.name for p in FILES if "cache=self.cache" in p.read_text(encoding="utf-8")] == ["engine.py"]


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_pages_are_thin(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 80
    assert not uses(path, "torch", "transformers", "kvviz.run", "kvviz.cache", "kvviz.eviction")


def own_imports(path: Path) -> str:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return "\n".join(ast.unparse(node) for node in body if isinstance(node, (ast.Import, ast.ImportFrom)))


def test_what_must_not_wait_for_torch_does_not_import_it() -> None:
    """Importing torch takes seconds: the settings of a page and a count of bytes do not wait for it.

    One process for all: whoever imports it first is named. Receptive field is left out, whose exact reach is torch
    through and through.
    """
    steps = [("memory", "import kvviz.memory", "'torch', 'numpy', 'transformers'")]
    steps += [(p.name, own_imports(p), "'torch', 'transformers'") for p in PAGES if p.name != "3_Receptive_field.py"]
    ask = "import sys\n"
    for name, code, heavy in steps:
        ask += f"{code}\nif {{{heavy}}} & set(sys.modules): sys.exit({name!r})\n"
    done = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# what asks a policy knows policies; the rest of the room is whole numbers
WITH_POLICIES = {"retention.py"}


@pytest.mark.parametrize("path", under("memory"), ids=lambda path: path.name)
def test_memory_needs_only_the_standard_library(path: Path) -> None:
    foreign = {name for name in imports(path) if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name.partition(".")[0] for name in foreign} <= {"kvviz"}
    allowed = ("kvviz.memory", "kvviz.choices.storage", "kvviz.knobs", "kvviz.choices", "kvviz.text")
    if path.name not in WITH_POLICIES:
        assert not {name for name in foreign if name != "kvviz" and not name.startswith(allowed)}
