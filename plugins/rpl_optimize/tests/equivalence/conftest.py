"""Programs that are shell scripts: a "kernel" is a line of them, and building copies the text."""

from __future__ import annotations

import hashlib
from pathlib import Path

import attrs
import pytest

from rpl_core.plugins.catalog import NamedContributions
from rpl_core.plugins.host import Contribution
from rpl_optimize.build.builders import BuiltProgram
from rpl_optimize.equivalence.stage import EquivalenceStage, EquivalenceSubject
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.interfaces.equivalence import EquivalenceOptions, EquivalenceRequest
from rpl_optimize.interfaces.proposer import InstalledTransformation
from rpl_optimize.interfaces.transformation import Edit, EditCandidate, KernelSource, Transformation

MARK = b"# kernel\n"


class ScriptBuilder:
    """Counts builds; a text with ``syntax error`` does not build."""

    summary = "copies a script"

    def __init__(self) -> None:
        self.built: list[bytes] = []

    def build(
        self, text: bytes, directory: Path, original: bytes | None = None
    ) -> BuiltProgram | BuildFailure:
        assert not any(directory.iterdir())
        self.built.append(text)
        if b"syntax error" in text:
            return BuildFailure("line 3: syntax error", (), 0.0, None)
        program = directory / "app"
        program.write_bytes(text)
        program.chmod(0o755)
        code = hashlib.sha256(text).hexdigest()
        return BuiltProgram(
            binary=program,
            commands=(),
            wall_s=0.0,
            log=directory / "log",
            binary_sha256=code,
            code_sha256=code,
            code_objects=(),
        )

    def command_for(self, build: BuiltProgram) -> tuple[str, ...]:
        return (str(build.binary), "8")


@attrs.frozen
class LineControls(Transformation):
    """The line behind ``# kernel`` is the kernel ``k``."""

    empty: bytes | None = b":\n"
    broken: bytes | None = b"echo 3.5 > out.txt\n"
    name = "lines"
    summary = "replaces a line"
    suffixes = (".sh",)

    def propose(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        return ()

    def controls(self, source: KernelSource) -> tuple[EditCandidate, ...]:
        begin = source.text.index(MARK) + len(MARK)
        end = source.text.index(b"\n", begin) + 1
        versions = {"empty": self.empty, "broken": self.broken}
        return tuple(
            EditCandidate(name, "k", 1, "wrong", (Edit(begin, end, text),))
            for name, text in versions.items()
            if text is not None
        )


def script(kernel: str, rest: str = "") -> bytes:
    return f"#!/bin/sh\n{MARK.decode()}{kernel}\n{rest}\n".encode()


def commands(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def named(noun: str, *values) -> NamedContributions:
    return NamedContributions(noun, [(value.name, Contribution("test", value)) for value in values])


@attrs.define
class Desk:
    """A user's directory and a stage over the given checks."""

    tmp: Path
    monkeypatch: pytest.MonkeyPatch
    builder: ScriptBuilder = attrs.field(factory=ScriptBuilder)
    stage: EquivalenceStage | None = None
    count: int = 0

    script = staticmethod(script)
    controls = LineControls

    @property
    def home(self) -> Path:
        return self.tmp / "home"

    def set_up(self, *checks, controls: Transformation | None = None, **options) -> Desk:
        options["validate"] = commands(options.get("validate", ()))
        wrong = LineControls() if controls is None else controls
        self.stage = EquivalenceStage(
            named("check", *checks),
            (InstalledTransformation("plugin", wrong),),
            self.builder,
            EquivalenceOptions(**options),
        )
        return self

    def build(self, text: bytes) -> BuiltProgram:
        self.count += 1
        folder = self.tmp / f"build-{self.count}"
        folder.mkdir()
        built = ScriptBuilder().build(text, folder)
        assert isinstance(built, BuiltProgram)
        return built

    def run(self, baseline: bytes, candidate: bytes):
        assert self.stage is not None
        subject = self.subject(baseline, candidate)
        return self.stage.run(subject, self.tmp / f"candidate-{self.count}")

    def subject(self, baseline: bytes, candidate: bytes) -> EquivalenceSubject:
        source = KernelSource("k.sh", baseline, "k")
        return EquivalenceSubject(source, self.build(baseline), self.build(candidate), ("./app", "8"))

    def request(self, baseline: bytes, candidate: bytes, **options) -> EquivalenceRequest:
        first, second = self.build(baseline), self.build(candidate)
        options["validate"] = commands(options.get("validate", ()))
        return EquivalenceRequest(
            self.tmp / "checks" / "baseline",
            self.tmp / "checks" / f"candidate-{self.count}",
            ("./app", "8"),
            self.builder.command_for(first),
            self.builder.command_for(second),
            EquivalenceOptions(**options),
            first.binary,
            second.binary,
        )


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    # Programs of these tests leave traces elsewhere.
    monkeypatch.setenv("RPL_SANDBOX", "builds")
    return Desk(tmp_path, monkeypatch)
