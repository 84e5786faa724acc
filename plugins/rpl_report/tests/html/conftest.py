"""Reports to look at, and a headless Chromium to look at them with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from rpl_testkit.fixtures import CommandLine, Launch
from rpl_testkit.requirements import require as require_program


def _beside(name: str):
    """A module of this folder: with import-mode importlib test folders are no packages."""
    path = Path(__file__).with_name(f"{name}.py")
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: Names that try to leave every context they appear in.
HOSTILE_NAMES = (
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=2</script>",
    "</title></style></textarea><img src=x onerror=window.hacked=3>",
    '" onmouseover=window.hacked=4 x="',
    "' autofocus onfocus=window.hacked=5 '",
    "<!--<script>",
    "{{ 7 * 7 }} {% include 'page.html.j2' %}",
    "\\u003cscript\\u003e javascript:window.hacked=6",
    "\x1b[31mred\x1b]0;title\x07",
    "right\u202eto\u2028left\u2066",
    "&lt;b&gt; &amp;amp;",
    "]]><svg/onload=window.hacked=7>",
    "long_" + "n" * 2043,
    "",
)


@pytest.fixture(scope="session")
def demo_report(demo_run: Path) -> Path:
    """Its report."""
    target = demo_run.parent / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        CommandLine(patch)("report", "--format", "html", "-o", target, demo_run).assert_ok()
    return target


@pytest.fixture
def report_of(rpl_cli: CommandLine, rpl_make_rocpd, tmp_path: Path) -> Callable[..., Path]:
    """``report_of(launches)``: the report of a recording with these launches."""

    def build(launches, *, device: str = "MI300X") -> Path:
        recording = rpl_make_rocpd(launches)
        rpl_cli("analyze", recording, "--device", device, "-o", tmp_path / "out").assert_ok()
        target = tmp_path / "report.html"
        words = ("--format", "html", "-o", target, "--recording", recording)
        rpl_cli("report", tmp_path / "out", *words).assert_ok()
        return target

    return build


@pytest.fixture
def hostile_report(report_of) -> Path:
    """Every hostile name as a kernel that runs once."""
    return report_of([Launch(name, 1000 * i, 1000 * i + 900) for i, name in enumerate(HOSTILE_NAMES, 1)])


@pytest.fixture(scope="session")
def hostile_names() -> tuple[str, ...]:
    return HOSTILE_NAMES


@pytest.fixture(scope="session")
def chromium_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    browser = _beside("browser")
    with browser.chromium(require_program("chromium"), tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture
def page(chromium_session):
    """The browser's page, with the complaints of earlier tests forgotten."""
    chromium_session.complaints.clear()
    chromium_session.requests.clear()
    return chromium_session


@pytest.fixture(scope="session")
def parsed():
    """``parsed(path)``: the document as a browser without scripts would see it."""
    return _beside("static_page").parse
