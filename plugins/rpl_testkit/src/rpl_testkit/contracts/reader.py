"""The contract of a reader: it recognises by content, never raises for strangers, and changes nothing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_testkit.contracts.same_value import same_value
from rpl_testkit.contracts.violation import ContractViolation, demand, demand_kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.interfaces.reader import InputSet, Reader
    from rpl_core.model.trace import Trace


def assert_reader(reader: Reader, sample: Path, scratch: Path) -> None:
    """Check ``reader`` on one file it can read, and on damaged and foreign files made in ``scratch``."""
    from rpl_core.model.trace import Trace

    subject = demand_kind("rpl_readers", reader)
    before = _fingerprint(sample)
    sets = _claim(reader, [sample], subject)
    readable = [inputs for inputs in sets if inputs.refusal is None]
    demand(bool(readable), subject, f"does not claim its own sample {sample.name}")
    for inputs in readable:
        first, second = reader.read(inputs), reader.read(inputs)
        demand(
            isinstance(first, tuple) and bool(first), subject, "read() returns a non-empty tuple of traces"
        )
        for trace in first:
            demand(isinstance(trace, Trace), subject, f"read() returned a {type(trace).__name__}")
            check_trace(trace, subject)
        demand(same_value(first, second), subject, "reading twice gives two different traces")
    for stranger in _strangers(sample, scratch):
        _read_or_refuse(reader, stranger, subject)
    _claim(reader, [scratch / "no-such-file", scratch], subject)
    demand(_fingerprint(sample) == before, subject, "reading changed the file")


def _claim(reader: Reader, files: Sequence[Path], subject: str) -> tuple[InputSet, ...]:
    from rpl_core.interfaces.reader import InputSet

    try:
        sets = tuple(reader.claim(files))
        again = tuple(reader.claim(files))
    except Exception as error:
        names = ", ".join(file.name for file in files)
        raise ContractViolation(f"{subject}: claim() raised for {names}: {error!r}") from error
    demand(sets == again, subject, "claiming twice gives two different answers")
    claimed = [path for inputs in sets for path in inputs.paths]
    demand(all(isinstance(inputs, InputSet) for inputs in sets), subject, "claim() returns InputSet objects")
    demand(set(claimed) <= set(files), subject, "claims a file that it was not shown")
    demand(len(set(claimed)) == len(claimed), subject, "claims one file twice")
    return sets


def _read_or_refuse(reader: Reader, file: Path, subject: str) -> None:
    for inputs in _claim(reader, [file], subject):
        if inputs.refusal is not None:
            demand(bool(inputs.refusal.strip()), subject, "a refusal says why")
            continue
        try:
            reader.read(inputs)
        except BadDataError as error:
            demand(file.name in error.one_line(), subject, f"the error does not name the file: {error.fact}")
        except Exception as error:
            raise ContractViolation(f"{subject}: read() of {file.name} raised {error!r}") from error


def _strangers(sample: Path, scratch: Path) -> list[Path]:
    data = sample.read_bytes()
    contents = {
        "empty": b"",
        "half": data[: len(data) // 2],
        "header": data[:100],
        "noise": bytes(range(256)) * 16,
    }
    paths = []
    for name, content in contents.items():
        path = scratch / f"{name}-{sample.name}"
        path.write_bytes(content)
        paths.append(path)
    return paths


def _fingerprint(path: Path) -> tuple[str, int, list[str]]:
    beside = sorted(entry.name for entry in path.parent.iterdir())
    return hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, beside


def check_trace(trace: Trace, subject: str) -> None:
    """Check the inner consistency of one trace, and the order of its rows."""
    from rpl_core.model.soundness import require_sound

    try:
        require_sound(trace)
    except (TypeError, ValueError) as error:
        demand(False, subject, str(error))
    _check_order(trace, f"{subject}, Dispatches")


def _check_order(trace: Trace, subject: str) -> None:
    import numpy as np

    rows = trace.dispatches
    order = np.lexsort((rows.dispatch_id, rows.process, rows.end_ns, rows.begin_ns))
    demand(bool((order == np.arange(len(rows))).all()), subject, "rows are not in the order of their begin")
