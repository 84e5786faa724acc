"""Who may import whom: arrows between distributions, and between the layers inside of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Distribution -> those that it may import. ``rpl_testkit`` may import all; nobody imports it.
ALLOWED = {
    "rpl_core": set(),
    "rpl_codeobject": {"rpl_core"},
    "rpl_analysis": {"rpl_core", "rpl_codeobject"},
    "rpl_report": {"rpl_core", "rpl_analysis"},
    "rpl_measure": {"rpl_core", "rpl_analysis"},
    "rpl_compare": {"rpl_core", "rpl_analysis", "rpl_report", "rpl_measure"},
    "rpl_optimize": {"rpl_core", "rpl_codeobject", "rpl_analysis", "rpl_measure"},
    "rpl_autotune": {"rpl_core", "rpl_codeobject", "rpl_analysis", "rpl_measure", "rpl_optimize"},
    "rpl_rocprofv3": {"rpl_core"},
    "rpl_amdgpu": {"rpl_core"},
    "rpl_gfx942": {"rpl_core", "rpl_amdgpu"},
    "rpl_gfx950": {"rpl_core", "rpl_amdgpu"},
    "rpl_gfx90a": {"rpl_core", "rpl_amdgpu"},
    "rpl_gfx1100": {"rpl_core", "rpl_amdgpu"},
    "rpl_gfx1030": {"rpl_core", "rpl_amdgpu"},
    "rpl_att": {"rpl_core", "rpl_codeobject", "rpl_analysis", "rpl_report", "rpl_rocprofv3"},
    "rpl_pcsampling": {"rpl_core", "rpl_analysis", "rpl_report", "rpl_rocprofv3"},
    "rpl_torch": {"rpl_core", "rpl_analysis", "rpl_rocprofv3"},
    "rpl_selftest": {"rpl_core", "rpl_codeobject", "rpl_measure", "rpl_optimize"},
    "rpl_native": set(),
    "rpl_vmreplay": {"rpl_core", "rpl_codeobject", "rpl_native", "rpl_optimize"},
    "rpl_emu": {
        "rpl_core",
        "rpl_codeobject",
        "rpl_amdgpu",
        "rpl_gfx942",
        "rpl_optimize",
        "rpl_vmreplay",
    },
    "rpl_llm_unroll": {"rpl_core", "rpl_codeobject", "rpl_analysis", "rpl_optimize", "rpl_transforms"},
    "rpl_transforms": {"rpl_core", "rpl_codeobject", "rpl_analysis", "rpl_optimize"},
    "rpl_mcp": {"rpl_core", "rpl_analysis", "rpl_compare", "rpl_optimize"},
    "rocm_perf_lab": set(),
}

#: Rooms inside a distribution, the lowest first: a room may import itself and those before it.
LAYERS = {
    "rpl_core": (
        ("errors", "process_start", "text", "files", "values"),
        ("model", "contracts"),
        ("interfaces",),
        ("hookspecs", "config", "process"),
        ("plugins", "run_directory", "devices", "documents", "ingest", "schedule"),
        ("pipeline",),
        ("executors", "executor_worker", "profiling", "builtin"),
        ("cli",),
    ),
    "rpl_analysis": (
        ("contracts", "options", "text", "interfaces"),
        ("hookspecs",),
        ("runtime", "occupancy", "counters", "critical_path", "instruction_mix"),
        ("execution_graph", "roofline"),
        ("what_if", "bottleneck", "ranks", "phases", "range_option", "facts", "advice"),
        ("documents",),
        ("cli", "plugin"),
    ),
    "rpl_analysis.execution_graph": (
        ("graph",),
        ("host_program",),
        ("dependencies",),
        ("results",),
        ("build",),
        ("analyzer",),
    ),
    "rpl_optimize": (
        ("contracts", "interfaces", "session_layout"),
        ("hookspecs",),
        ("source_meaning", "running"),
        ("measurement",),
        ("transform", "build", "ceilings"),
        ("ranked",),
        ("ledger", "equivalence"),
        ("loop",),
        ("cli", "plugin"),
    ),
    "rpl_autotune": (
        ("contracts", "interfaces"),
        ("hookspecs", "space", "options"),
        ("space_file", "templates", "regression", "source_tuning"),
        ("run_job", "recorded_space", "strategies"),
        ("tuning", "outcome", "report"),
        ("cli", "plugin"),
    ),
}
#: Rooms that are one: the public module that opens databases is made of the readers' own.
_AS_ONE = {"rpl_rocprofv3.database": "readers"}
#: May be imported from below: keys of facts name the types of every room, for type checkers only.
_KEYS_OF_FACTS = "facts"


def _packages() -> dict[str, Path]:
    found = {"rpl_core": ROOT / "rpl_core", "rocm_perf_lab": ROOT / "metapackage" / "src" / "rocm_perf_lab"}
    found["rpl_native"] = ROOT / "native" / "python" / "rpl_native"
    for folder in sorted((ROOT / "plugins").iterdir()):
        source = folder / "src" / folder.name
        if source.is_dir():
            found[folder.name] = source
    return found


PACKAGES = _packages()


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _imports(path: Path, *, types: bool = True) -> set[str]:
    """Modules of this repository that the file imports anywhere; without ``types`` when it runs."""
    names = set()
    waiting: list[ast.AST] = [_tree(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and not types and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)} imports relatively: that hides its arrows"
            module = node.module or ""
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.partition(".")[0] in PACKAGES}


def test_every_distribution_has_its_arrows():
    assert set(PACKAGES) - {"rpl_testkit"} == set(ALLOWED)


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_arrows_between_distributions(package):
    imported = {(name, path) for path in PACKAGES[package].rglob("*.py") for name in _imports(path)}
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for name, path in imported
        if name.partition(".")[0] not in {package, *ALLOWED[package]}
    }
    assert not wrong
    assert ALLOWED[package] <= {name.partition(".")[0] for name, _ in imported}  # no arrow that nobody takes


@pytest.mark.parametrize("package", sorted(LAYERS))
def test_arrows_between_rooms(package):
    distribution, *inner = package.split(".")
    folder = PACKAGES[distribution].joinpath(*inner)
    level = {room: number for number, rooms in enumerate(LAYERS[package]) for room in rooms}
    wrong = set()
    for path in folder.rglob("*.py"):
        here = path.relative_to(folder).with_suffix("").parts[0]
        if here == "__init__":
            continue
        assert here in level, f"the room {package}.{here} has no level yet"
        for name in _imports(path):
            if not name.startswith(f"{package}."):
                continue
            there = name.removeprefix(f"{package}.").partition(".")[0]
            if there in level and level[there] > level[here]:
                wrong.add(f"{path.relative_to(ROOT)} ({here}) imports {name} ({there})")
    assert not {arrow for arrow in wrong if not arrow.endswith(f"({_KEYS_OF_FACTS})")}


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_no_circle_between_rooms(package):
    """When the program runs; names of types may point up."""
    folder = PACKAGES[package]

    def room(words: Sequence[str]) -> str:
        return _AS_ONE.get(".".join((package, *words[:1])), words[0] if words else "")

    below: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        here = room(path.relative_to(folder).with_suffix("").parts)
        own = (name.split(".")[1:] for name in _imports(path, types=False) if name.startswith(f"{package}."))
        below.setdefault(here, set()).update(there for words in own if (there := room(words)) != here)
    below.pop("__init__", None)
    list(TopologicalSorter(below).static_order())  # raises CycleError


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_no_circle_inside_a_room(package):
    """Between modules when the program runs, late imports included; names of types may point up."""
    folder = PACKAGES[package]
    modules = {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in folder.rglob("*.py")
    }
    # `from a import b` names `a` and `a.b`: where `a.b` is a module, the import is of that one.
    below = {}
    for module, path in modules.items():
        names = _imports(path, types=False) & set(modules)
        outer = {name for name in names if any(other.startswith(f"{name}.") for other in names)}
        below[module] = {n for n in names if n not in outer or _takes_names_of(path, n, modules)} - {module}
    list(TopologicalSorter(below).static_order())  # raises CycleError


def _takes_names_of(path: Path, package: str, modules: dict[str, Path]) -> bool:
    """Whether the file imports the package itself, or a name that is none of its modules."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            if any(f"{package}.{alias.name}" not in modules for alias in node.names):
                return True
        elif isinstance(node, ast.Import) and package in {alias.name for alias in node.names}:
            return True
    return False


def test_no_plugin_is_imported_by_name_in_a_string():
    """Entry points only: a string that names a module of another distribution would be a hidden arrow."""
    others = {name for name in PACKAGES if name != "rpl_core"}
    wrong = set()
    for package, folder in PACKAGES.items():
        if package == "rpl_testkit":
            continue
        for path in folder.rglob("*.py"):
            for node in ast.walk(_tree(path)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    head = node.value.partition(".")[0]
                    if (
                        head in others - {package}
                        and node.value.replace(".", "").replace(":", "").isidentifier()
                    ):
                        wrong.add(f"{path.relative_to(ROOT)}: {node.value!r}")
    assert not wrong


def test_only_the_core_imports_by_strings():
    """It imports what entry points name; a plugin that puts a module's name together would hide an arrow."""
    wrong = [
        str(path.relative_to(ROOT))
        for package in set(PACKAGES) - {"rpl_core", "rpl_testkit"}
        for path in PACKAGES[package].rglob("*.py")
        for node in ast.walk(_tree(path))
        if isinstance(node, (ast.Name, ast.Attribute, ast.alias))
        and {"import_module", "__import__"}
        & {getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", "")}
    ]
    assert wrong == []
