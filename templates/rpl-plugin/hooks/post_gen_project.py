"""Keep the work of the chosen kind only."""

from pathlib import Path

KIND = "{{ cookiecutter.kind }}"
WORK = {
    "check": "free_space.py",
    "device": "products.py",
    "reader": "launches_file.py",
    "analyzer": "longest.py",
    "transformation": "unroll_hint.py",
}
MODULE, TESTS = Path("src") / "{{ cookiecutter.__module }}", Path("tests")

(MODULE / f"plugin_{KIND}.py").rename(MODULE / "plugin.py")
(TESTS / f"test_{KIND}.py").rename(TESTS / "test_plugin.py")
for kind in WORK.keys() - {KIND}:
    for path in (MODULE / f"plugin_{kind}.py", TESTS / f"test_{kind}.py", MODULE / WORK[kind]):
        path.unlink()
