"""The committed script and style are what ``web/`` builds, and carry the licence of what is inside them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[4]
ASSETS = PROJECT / "plugins" / "rpl_report" / "src" / "rpl_report" / "html" / "assets"
WEB = PROJECT / "web"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_sources_are_those_that_the_bundle_was_built_from():
    built = json.loads((ASSETS / "built-from.json").read_text())
    own = [path for path in WEB.rglob("*") if path.is_file() and "node_modules" not in path.parts]
    sources = {
        path.relative_to(WEB).as_posix(): _digest(path)
        for path in own
        if path.name not in (".npmrc", "README.md")
    }
    assert sources == built["sources"], "run `npm ci && npm run build` in web/"


def test_bundle_is_the_one_that_was_built():
    built = json.loads((ASSETS / "built-from.json").read_text())
    for name, digest in built["outputs"].items():
        assert _digest(ASSETS / name) == digest, name


def test_bundle_carries_its_licence_and_stays_small():
    assert "MIT License" in (ASSETS / "LICENSE.uPlot.txt").read_text()
    assert (ASSETS / "report.js").stat().st_size < 120_000
    assert "</script" not in (ASSETS / "report.js").read_text()


def test_versions_are_pinned():
    packages = json.loads((WEB / "package.json").read_text())["devDependencies"]
    assert all(version[0].isdigit() for version in packages.values())


@pytest.mark.long
def test_building_again_gives_the_same_bundle(rpl_require):
    node = rpl_require("node")
    if not (WEB / "node_modules" / "esbuild").is_dir():
        pytest.skip("needs npm packages: run `npm ci` in web/")
    done = subprocess.run(
        [node, "build.mjs", "--check"], cwd=WEB, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
