"""What `rpl transform` offers for public HIP code: kernels, loops, offered, refused by which guard.

    python benchmarks/public_kernels.py https://github.com/ORNL/HeCBench --under src --match '*-hip/*'
    python benchmarks/public_kernels.py --folder ~/HeCBench/src

With an address the repository is cloned into a temporary folder (the newest commit alone), looked at, and
removed again; nothing of it is kept or committed. Files are read, never compiled or run.
"""

from __future__ import annotations

import argparse
import fnmatch
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_transforms.source_file import read_source_file
from rpl_transforms.unroll import Unroll

_SUFFIXES = (".cu", ".hip", ".cpp", ".cc", ".h", ".hpp", ".cuh")
_MOST_BYTES = 2 << 20


@frozen
class Counted:
    """``refused`` counts loops by the first guard against them."""

    files: int
    kernels: int
    loops: int
    offered: int
    refused: Counter[str]


def count(folder: Path, match: str) -> Counted:
    """All sources below ``folder`` that hold kernels and whose path matches."""
    files = kernels = offered = 0
    refused: Counter[str] = Counter()
    for path in _sources(folder, match):
        text = path.read_bytes()
        found = read_source_file(text).kernels
        if not found:
            continue
        files, kernels = files + 1, kernels + len(found)
        candidates = Unroll().propose(KernelSource(str(path), text))
        offered += len({c.id.rpartition("-")[0] for c in candidates if c.allowed})
        refused.update(next(g.guard for g in c.guards if not g.passed) for c in candidates if not c.allowed)
    return Counted(files, kernels, offered + refused.total(), offered, refused)


def table(counted: Counted) -> str:
    """For a page in Markdown."""
    rows = [("files with kernels", counted.files), ("kernels", counted.kernels), ("loops", counted.loops)]
    rows.append(("offered", counted.offered))
    rows += [(f"refused: {guard}", number) for guard, number in counted.refused.most_common()]
    return "\n".join(["| what | number |", "|---|---|", *(f"| {what} | {number} |" for what, number in rows)])


def _sources(folder: Path, match: str) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        fits = path.suffix in _SUFFIXES and fnmatch.fnmatch(str(path.relative_to(folder)), match)
        if fits and not path.is_symlink() and path.is_file() and path.stat().st_size <= _MOST_BYTES:
            yield path


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repository", nargs="?", help="address that git can clone")
    parser.add_argument("--folder", type=Path, help="a folder that is there already")
    parser.add_argument("--under", default=".", help="part of the repository")
    parser.add_argument("--match", default="*", help="pattern of paths below it")
    given = parser.parse_args()
    if (given.repository is None) == (given.folder is None):
        parser.error("name a repository or --folder")
    if given.folder is not None:
        print(table(count(given.folder / given.under, given.match)))
        return 0
    with tempfile.TemporaryDirectory(prefix="rpl-public-") as scratch:
        clone = ["git", "clone", "--quiet", "--depth", "1", "--", given.repository, f"{scratch}/clone"]
        if subprocess.run(clone, check=False).returncode != 0:
            return 69
        print(table(count(Path(scratch, "clone", given.under), given.match)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
