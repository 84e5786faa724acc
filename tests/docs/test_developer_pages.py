"""What architecture and developer guide say of files, names and arrows is what the repository holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

GUIDE = "docs/DEVELOPER_GUIDE.md"
ARCHITECTURE = "docs/ARCHITECTURE.md"
_SHORT = re.compile(r"`([A-Z]+)` is\s+`([\w/]+)`")
_FOLDERS = ("rpl_core/", "plugins/", "tests/", "tools/", "docs/", "examples/", "templates/", "benchmarks/")


def _place(documentation, span: str) -> Path | None:
    """The file or folder that a code span names, or ``None`` for other spans."""
    short = dict(_SHORT.findall(documentation.page(GUIDE).read_text(encoding="utf-8")))
    first, _, rest = span.partition("/")
    if first in short and rest:
        return documentation.root / short[first] / rest
    named = span.startswith(_FOLDERS) and not re.search(r"[<>*{ ]", span)
    return documentation.root / span if named else None


def test_every_file_that_a_page_names_exists(documentation):
    """Pages that cite files of other projects beside their own are left out."""
    citing = {documentation.page("docs/ROOFLINE_DESIGN.md"), *documentation.page("docs/reference").iterdir()}
    absent, named = [], 0
    for page in documentation.pages:
        spans = documentation.spans(page.read_text(encoding="utf-8")) if page not in citing else []
        places = {span: place for span in spans if (place := _place(documentation, span)) is not None}
        named += len(places)
        absent += [f"{page.name}: {span}" for span, place in places.items() if not place.exists()]
    assert named > 100
    assert absent == []


def test_the_walk_of_a_dispatch_names_what_is_there(documentation):
    rows = documentation.rows(GUIDE, "file", "names", "what happens")
    lacking = []
    for file, names, _ in rows:
        text = _place(documentation, file.strip("`")).read_text(encoding="utf-8")
        lacking += [f"{file}: {n}" for n in documentation.spans(names) if not re.search(rf"\b{n}\b", text)]
    assert lacking == []


def test_the_table_of_facts_is_what_the_analyzers_declare(documentation):
    rows = documentation.rows(GUIDE, "fact", "analyzer", "needs")
    for facts, file, needs in rows:
        text = _place(documentation, file.strip("`")).read_text(encoding="utf-8")
        declared = dict(
            re.findall(r"^    (requires|wants|provides) = frozenset\(\{(.*)\}\)", text, re.MULTILINE)
        )
        given = {name for key, names in declared.items() if key != "provides" for name in names.split(", ")}
        assert set(declared["provides"].split(", ")) == set(documentation.spans(facts)), file
        assert given == set(documentation.spans(needs)), file


def test_where_a_change_goes_is_there(documentation):
    """Names beside a file in the table of changes stand in that file."""
    for _, here, _ in documentation.rows(GUIDE, "change", "here", "and"):
        for name, file in re.findall(r"`(\w+)(?:\(\.\.\.\))?` in `([\w/]+\.\w+)`", here):
            text = _place(documentation, file).read_text(encoding="utf-8")
            assert re.search(rf"\b{name}\b", text), f"{file}: {name}"


def _imports(folder: Path) -> set[str]:
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
    return found


def test_the_arrows_between_distributions_are_the_imports(documentation):
    root = documentation.root
    packages = {
        "rpl_core": root / "rpl_core",
        "rocm_perf_lab": root / "metapackage" / "src" / "rocm_perf_lab",
        "rpl_native": root / "native" / "python" / "rpl_native",
    }
    packages |= {folder.name: folder / "src" / folder.name for folder in (root / "plugins").iterdir()}
    packages = {name: folder for name, folder in packages.items() if (folder / "__init__.py").is_file()}
    rows = documentation.rows(ARCHITECTURE, "distribution", "what it is", "imports")
    stated = {name.strip("`"): set(documentation.spans(imports)) for name, _, imports in rows}
    assert stated == {name: (_imports(at) & set(packages)) - {name} for name, at in packages.items()}
