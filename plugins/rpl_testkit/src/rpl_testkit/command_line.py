"""Run ``rpl`` in a test and look at what it did: exit code, result on stdout, conversation on stderr."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from rpl_core.values import frozen

_START = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"


@frozen
class Outcome:
    """What one command line did."""

    arguments: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str

    def assert_ok(self) -> Outcome:
        """Exit code 0, no traceback; returns itself so that calls can be chained."""
        return self.assert_exit(0)

    def assert_exit(self, code: int) -> Outcome:
        """The documented exit code and never a traceback."""
        if self.exit_code != code or "Traceback (most recent call last)" in self.stderr:
            raise AssertionError(f"expected exit code {code}\n{self._transcript()}")
        return self

    def json(self) -> Any:
        """The one JSON document on stdout; NaN and infinities are refused as JSON forbids them."""
        try:
            return json.loads(self.stdout, parse_constant=_refuse_constant)
        except ValueError as error:
            raise AssertionError(f"stdout is not one JSON document: {error}\n{self._transcript()}") from None

    def _transcript(self) -> str:
        return (
            f"$ rpl {' '.join(self.arguments)}\nexit code {self.exit_code}\n"
            f"--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"
        )


@frozen
class CommandLine:
    """Call it to run ``rpl`` inside the test process; ``process`` runs it in a fresh interpreter."""

    monkeypatch: pytest.MonkeyPatch

    def __call__(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Outcome:
        from rpl_core.cli.main import run

        words = tuple(str(argument) for argument in arguments)
        out, err = _captured(), _captured()
        with self.monkeypatch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            if cwd is not None:
                patch.chdir(cwd)
            with redirect_stdout(out), redirect_stderr(err):
                code = run(list(words))
        return Outcome(words, code, _text(out), _text(err))

    def process(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float = 120,
    ) -> Outcome:
        """As a user would start it, with its own interpreter, signals and file descriptors."""
        import os

        words = tuple(str(argument) for argument in arguments)
        done = subprocess.run(
            [sys.executable, "-c", _START, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            timeout=timeout_s,
        )
        return Outcome(words, done.returncode, done.stdout, done.stderr)


def _captured() -> io.TextIOWrapper:
    # Commands may write bytes, so the stream needs a buffer below the text.
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "surrogateescape")


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")
