"""What a candidate says is read and run by one function, in a sandbox: nothing beside it starts a process."""

from __future__ import annotations

import ast
from pathlib import Path

PLUGINS = Path(__file__).parents[2] / "plugins"
#: Distributions that handle candidates.
HANDLERS = ("rpl_optimize", "rpl_llm_unroll", "rpl_transforms")
RUNNER = "rpl_optimize/src/rpl_optimize/running"
STARTERS = {"subprocess", "multiprocessing", "pty", "run_command", "_posixsubprocess"}
_OF_OS = ("exec", "spawn", "posix_spawn", "system", "popen", "fork", "startfile")


def _starts(path: Path) -> bool:
    """Whether a module imports what starts processes, types apart."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.partition(".")[0] in STARTERS for name in names):
                return True
            if isinstance(node, ast.ImportFrom) and node.module == "os" and _of_os(names):
                return True
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os" and _of_os([node.attr]):
            return True
    return False


def _of_os(names: list[str]) -> bool:
    return any(name.startswith(_OF_OS) for name in names)


def test_nothing_beside_the_sandboxed_runner_starts_a_process():
    files = [path for name in HANDLERS for path in (PLUGINS / name / "src").rglob("*.py")]
    found = {path.relative_to(PLUGINS).as_posix() for path in files if _starts(path)}
    # Inside or around it: what lets a command see a built file at another's place, and whether that works.
    around = ("program_word", "mount_and_run")
    assert found == {f"{RUNNER}/{name}.py" for name in ("confined", "sandbox", *around)}


def test_compilers_are_named_in_one_place():
    files = [path for name in HANDLERS for path in (PLUGINS / name / "src").rglob("*.py")]
    found = {path.name for path in files if "clang++-" in path.read_text()}
    assert found == {"systems.py"}
