"""Build the programs of `rpl demo` into the sources of rpl-emu, from where its wheel takes them.

``python tools/build_demo_programs.py [FILE]``: the testbed and the optimizer's example as programs for the
default runtime of `rpl emu get-runtime`, two candidates as code objects, and the sources of all. It needs
clang and fetches the runtime. Each call with the same compiler writes the same bytes.
"""

from __future__ import annotations

import io
import lzma
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from demo import compile_words, compiler, fetched_runtime, link_words

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = ROOT / "plugins/rpl_emu/src/rpl_emu/demo/programs.tar.xz"
TESTBED, EXAMPLE = ROOT / "examples/testbed", ROOT / "examples/optimize"


def build(archive: Path) -> None:
    """Raises SystemExit with what a compiler says."""
    words = [*compile_words(clang := compiler(), runtime := fetched_runtime(clang))]
    # No path of this machine gets into what is built.
    words += ["-ffile-compilation-dir=.", f"-ffile-prefix-map={runtime}=rocm"]
    programs = [*sorted(TESTBED.glob("*.hip")), EXAMPLE / "smooth.hip"]
    candidates = sorted((EXAMPLE / "candidates").glob("*.hip"))
    sources = [*programs, *candidates, TESTBED / "check.h"]
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=packed, mode="w") as tar:
        for source in programs:
            _compile([*words, *link_words(runtime)], source, Path(folder, source.stem))
        for source in candidates:
            device_only = ["--cuda-device-only", "--no-gpu-bundle-output"]
            _compile([*words, *device_only], source, Path(folder, f"{source.stem}.hsaco"))
        for path in (*sorted(Path(folder).iterdir()), *sources):
            content = path.read_bytes()
            entry = tarfile.TarInfo(path.name)
            entry.size, entry.mode = len(content), 0o755 if not path.suffix else 0o644
            tar.addfile(entry, io.BytesIO(content))
    archive.write_bytes(lzma.compress(packed.getvalue(), preset=9))


def _compile(words: Sequence[str], source: Path, target: Path) -> None:
    command = [word.replace("{source}", str(source.relative_to(ROOT))) for word in words]
    # Else the name that joins a program's two sides is drawn from all options, the temporary folder too.
    command += [f"-cuid=demo_{source.stem}", "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{source} can't be built:\n{done.stderr[-4000:]}")


def say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ARCHIVE)
