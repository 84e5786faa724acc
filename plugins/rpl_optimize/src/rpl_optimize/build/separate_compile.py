"""One translation unit out of two texts: device code of the candidate, host code of the user's own source.

So a candidate changes device code and never host code, whatever its text says. Both compilations have the
same options and unit id: with the user's own text twice, the object is what one compilation gives, bit for
bit. ``-fcuda-include-gpubinary`` is how clang's own driver hands the device code to the host compilation; for
relocatable device code it joins both with ``clang-offload-bundler`` (clang's "Offload Bundler" document).
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Final

from rpl_core.values import frozen
from rpl_optimize.build.build_run import StepFailedError
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rpl_optimize.build.build_run import BuildRun

HOST_CODE: Final = "host-code"
#: A line that a candidate adds moves the lines behind it, and `assert` writes their numbers into host code.
#: That is refused, with the reason: with these words only such numbers were different.
SAME_LINES: Final = ("-w", "-D", "__LINE__=0")
MOVED_LINES: Final = (
    "the candidate moves lines whose numbers are in the host's code (assert, __LINE__): "
    "a #line behind the kernel keeps them"
)
_RELOCATABLE: Final = ("-fgpu-rdc", "-fno-gpu-rdc")
_BUNDLER: Final = "clang-offload-bundler"


def unit_id(source: Path) -> str:
    """An id of the translation unit that stays the same whatever the candidate and wherever it is built."""
    return hashlib.sha256(os.fsencode(source)).hexdigest()[:16]


def overlay(header: Path, text: Path) -> str:
    """A file for clang's ``-ivfsoverlay``, by which ``text`` is read where ``header`` is."""
    shown = {"type": "file", "name": header.name, "external-contents": str(text)}
    place = {"type": "directory", "name": str(header.parent), "contents": [shown]}
    return json.dumps({"version": 0, "use-external-names": "false", "roots": [place]})


@frozen
class SeparateCompile:
    """``command`` compiles its first path to the object at the second one; the compiler is its first word."""

    command: Callable[[Path, Path], tuple[str, ...]]
    place: Path
    environment: Mapping[str, str]
    unit_id: str

    def compile(self, run: BuildRun, device: Path, host: Path, target: Path) -> Path:
        """The object at ``target``. ``StepFailedError`` where a compiler fails or writes nothing."""
        relocatable = [word for word in self.command(host, target) if word in _RELOCATABLE][-1:]
        if relocatable == ["-fgpu-rdc"]:
            self._by_bundler(run, device, host, target)
        else:
            bundle = target.with_suffix(".hipfb")
            self._step(run, device, bundle, "--offload-device-only")
            given = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(bundle))
            self._step(run, host, target, "--offload-host-only", *given)
        return target

    def verdict(self, run: BuildRun, host: Path, candidate: bytes) -> GuardVerdict:
        """Whether the candidate's own host code is that of the text at ``host``: who accepts it compiles it.

        Both are compiled at the same path, without debug information.
        """
        texts = (candidate, host.read_bytes())
        try:
            if self._same_objects(run, host, texts):
                return GuardVerdict(HOST_CODE, True, "the host's code is that of the unchanged source")
            if self._same_objects(run, host, texts, *SAME_LINES):
                return GuardVerdict(HOST_CODE, False, MOVED_LINES)
        except StepFailedError as error:
            return GuardVerdict(HOST_CODE, False, f"the host's code can't be compared: {error}")
        return GuardVerdict(HOST_CODE, False, "the candidate changes the host's code, which was not used")

    def _same_objects(self, run: BuildRun, host: Path, texts: tuple[bytes, bytes], *more: str) -> bool:
        """Leaves the last text in its place."""
        objects = set()
        for text in texts:
            run.write(host, text)
            target = run.temporary / "host.o"
            target.unlink(missing_ok=True)
            self._step(run, host, target, "--offload-host-only", last=("-g0", "-w", *more))
            objects.add(target.read_bytes())
        return len(objects) == 1

    def _step(
        self, run: BuildRun, source: Path, output: Path, *more: str, last: tuple[str, ...] = ()
    ) -> None:
        compiler, *words = self.command(source, output)
        # The user's options come later and win, in both compilations; ``last`` comes behind them.
        command = (compiler, f"-cuid={self.unit_id}", *more, *words, *last)
        run.step(command, self.place, self.environment, recorded=not last)
        if not output.is_file():
            raise StepFailedError(f"the compiler ended well, but wrote no {output.name}")

    def _by_bundler(self, run: BuildRun, device: Path, host: Path, target: Path) -> None:
        """Compile both texts whole, then take the device's part of one and the host's part of the other."""
        parts = {}
        for name, source in (("device", device), ("host", host)):
            whole = target.with_suffix(f".{name}.o")
            self._step(run, source, whole)
            parts[name] = whole
        bundler = self._bundler(run, target)
        listed = run.step(
            (bundler, "-list", "-type=o", f"-input={parts['host']}"), self.place, self.environment
        )
        kinds = [line for line in map(str.strip, listed) if line.startswith(("host-", "hip"))]
        files = {kind: target.with_suffix(f".{number}.part") for number, kind in enumerate(kinds)}
        for name, whole in parts.items():
            own = [kind for kind in kinds if kind.startswith("host-") == (name == "host")]
            taken = [f"-output={files[kind]}" for kind in own]
            split = (f"-targets={','.join(own)}", f"-input={whole}", *taken)
            run.step((bundler, "-unbundle", "-type=o", *split), self.place, self.environment)
        given = [f"-input={files[kind]}" for kind in kinds]
        joined = (f"-targets={','.join(kinds)}", *given, f"-output={target}")
        run.step((bundler, "-type=o", *joined), self.place, self.environment)

    def _bundler(self, run: BuildRun, target: Path) -> str:
        """The one that belongs to the compiler."""
        asked = (self.command(target, target)[0], f"-print-prog-name={_BUNDLER}")
        lines = run.step(asked, self.place, self.environment)
        return lines[-1].strip() if lines else _BUNDLER
