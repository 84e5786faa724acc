"""Write what all distributions have in common into their ``pyproject.toml``.

``python tools/write_metadata.py`` writes, ``--check`` only says (exit 1) what is stale, and
``--version 0.2.0`` sets a new version first. The version is stated in ``rpl_core/__init__.py``; authors,
classifiers and addresses are those of the root's ``pyproject.toml``. Every distribution requires the others
in exactly its own version, so that upgrading one upgrades all. Plugins of others, which the template, the
examples and the guides stand for, state a range.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tomlkit

ROOT = Path(__file__).resolve().parent.parent
STATED = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
#: The first is the one to edit. The metapackage has a copy: a source archive holds no link out of itself.
_PACKAGES = (
    "plugins/rpl_amdgpu/src/rpl_amdgpu/packages.json",
    "metapackage/src/rocm_perf_lab/packages.json",
)
_RANGE = re.compile(r"\b(rpl-[a-z0-9-]+(?:\[[a-z,]+\])?)>=[\d.]+,<[\d.]+")
_CITED = re.compile(r"^version: .*$", re.MULTILINE)
_HEADER = re.compile(r"\n+^\[(?=[a-z])", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


def projects(root: Path = ROOT) -> list[Path]:
    """Folders of all distributions but the core's, which stands at the root."""
    plugins = [path.parent for path in sorted(root.glob("plugins/*/pyproject.toml"))]
    return [*plugins, root / "native", root / "metapackage"]


def stated_version(root: Path = ROOT) -> str:
    found = STATED.search((root / "rpl_core" / "__init__.py").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("rpl_core/__init__.py states no __version__")
    return found[1]


def written(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Every file that depends on the common facts, with the text that it should have."""
    version = stated_version(root)
    common = _read(root / "pyproject.toml")["project"]
    own = {"rpl-core"} | {_read(p / "pyproject.toml")["project"]["name"] for p in projects(root)}
    for project in projects(root):
        file = project / "pyproject.toml"
        yield file, _distribution(file.read_text(encoding="utf-8"), version, common, own)
    yield root / "CITATION.cff", _CITED.sub(f"version: {version}", _text(root / "CITATION.cff"))
    table = _text(root / _PACKAGES[0])
    for place in _PACKAGES:
        yield root / place, table
    for file in _of_strangers(root):
        yield file, _RANGE.sub(rf"\1{_range(version)}", _text(file))


def _of_strangers(root: Path) -> Iterator[Path]:
    yield from sorted(root.glob("examples/*/pyproject.toml"))
    yield from sorted(root.glob("templates/*/*/pyproject.toml"))
    yield from sorted(root.glob("docs/plugins/**/*.md"))


def _range(version: str) -> str:
    major, minor = version.split(".")[:2]
    return f">={major}.{minor},<{major}.{int(minor) + 1}"


def _distribution(text: str, version: str, common: Any, own: set[str]) -> str:
    document = tomlkit.parse(text)
    project: Any = document["project"]
    project["version"] = version
    for key in ("authors", "classifiers"):
        _set(project, key, common[key])
    if project.get("urls") != common["urls"]:
        urls = tomlkit.table()
        urls.update(common["urls"])
        urls.add(tomlkit.nl())
        project["urls"] = urls
    extras = project.get("optional-dependencies", {})
    for table, key in ((project, "dependencies"), *((extras, extra) for extra in extras)):
        _set(table, key, [_pinned(requirement, version, own) for requirement in table.get(key, ())])
    return _HEADER.sub(r"\n\n[", tomlkit.dumps(document))


def _pinned(requirement: str, version: str, own: set[str]) -> str:
    name = re.match(r"[A-Za-z0-9-]+(\[[^]]*\])?", requirement)
    if name is None or name[0].partition("[")[0] not in own:
        return requirement
    _, semicolon, marker = requirement.partition(";")
    return f"{name[0]}=={version}{semicolon}{marker}"


def _set(table: Any, key: str, values: Sequence[Any]) -> None:
    if list(table.get(key, ())) == list(values):
        return
    if len(table.get(key, ())) == len(values):  # changed in place, the layout stays as it was
        for place, value in enumerate(values):
            table[key][place] = value
        return
    one_each = "".join(f"\n  {tomlkit.item(value).as_string()}," for value in values)
    only = tomlkit.item(values[0]).as_string() if len(values) == 1 else one_each + "\n"
    table[key] = tomlkit.parse(f"values = [{only}]")["values"]


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _read(file: Path) -> Any:
    return tomlkit.parse(_text(file))


def _state(version: str) -> None:
    if not _VERSION.fullmatch(version):
        raise SystemExit(f"{version!r} is no version such as 0.2.0 or 0.2.0rc1")
    file = ROOT / "rpl_core" / "__init__.py"
    file.write_text(STATED.sub(f'__version__ = "{version}"', _text(file)), encoding="utf-8")


def main() -> int:
    """Write or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is stale")
    parser.add_argument("--version", help="state this version first")
    asked = parser.parse_args()
    if asked.version:
        _state(asked.version)
    stale = [(file, text) for file, text in written() if _text(file) != text]
    for file, text in stale:
        print(file.relative_to(ROOT))
        if not asked.check:
            file.write_text(text, encoding="utf-8")
    return 1 if asked.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
