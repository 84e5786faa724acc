"""The contract check of readers, with a toy format of one kernel name and its times."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rpl_core.errors import BadDataError
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.metric import Origin
from rpl_core.model.trace import Dispatches, Kernel, LaunchShapes, Process, Trace, TraceRole, TraceSource
from rpl_testkit.contracts import ContractViolation, assert_reader

MAGIC = b"TOY 1\n"


def toy_trace(begin, end):
    rows = len(begin)
    zero, unknown = np.zeros(rows, np.int32), np.full(rows, -1, np.int32)
    one_shape = np.array([[64, 1, 1]])
    return Trace(
        source=TraceSource("toy", "toy 1", ("x",)),
        role=TraceRole.TIMING,
        origin=Origin.SYNTHETIC,
        processes=(Process("guid", 1, "node"),),
        agents=(),
        kernels=(Kernel("k"),),
        dispatches=Dispatches(
            process=zero,
            agent=unknown,
            kernel=zero,
            stream=unknown,
            queue=unknown,
            shape=zero,
            dispatch_id=np.arange(rows),
            correlation_id=unknown.astype(np.int64),
            begin_ns=np.array(begin),
            end_ns=np.array(end),
        ),
        shapes=LaunchShapes(one_shape, one_shape, np.array([0]), np.array([0])),
    )


class ToyReader(Reader):
    name, summary = "toy", "Reads toys."

    def claim(self, files):
        known = [f for f in files if f.is_file() and f.read_bytes()[: len(MAGIC)] == MAGIC]
        return tuple(InputSet(self.name, "toy 1", (file,)) for file in known)

    def read(self, inputs):
        file = inputs.paths[0]
        lines = file.read_text().splitlines()[1:]
        if not lines or lines[-1] != "end":
            raise BadDataError(f"{file.name}: line {len(lines) + 1}: no end mark")
        times = [tuple(map(int, line.split())) for line in lines[:-1]]
        return (toy_trace([b for b, _ in times], [e for _, e in times]),)


@pytest.fixture
def sample(tmp_path):
    folder = tmp_path / "sample"
    folder.mkdir()
    file = folder / "recording.toy"
    file.write_bytes(MAGIC + b"10 20\n30 45\n50 60\nend\n")
    return file


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def test_a_good_reader_passes(sample, scratch):
    assert_reader(ToyReader(), sample, scratch)


class RaisingInClaim(ToyReader):
    def claim(self, files):
        return tuple(InputSet("toy", "toy", (f,)) for f in files if f.read_bytes().startswith(MAGIC))


class Blind(ToyReader):
    def claim(self, files):
        return ()


class Twice(ToyReader):
    def claim(self, files):
        return super().claim(files) * 2


class Unprepared(ToyReader):
    def read(self, inputs):
        times = [line.split() for line in inputs.paths[0].read_text().splitlines()[1:] if line != "end"]
        return (toy_trace([int(t[0]) for t in times], [int(t[1]) for t in times]),)


class Nameless(ToyReader):
    def read(self, inputs):
        try:
            return super().read(inputs)
        except BadDataError:
            raise BadDataError("something is wrong") from None


class LeavingLitter(ToyReader):
    def read(self, inputs):
        inputs.paths[0].with_suffix(".index").touch()
        return super().read(inputs)


class Unsorted(ToyReader):
    def read(self, inputs):
        super().read(inputs)
        return (toy_trace([30, 10], [45, 20]),)


class PointingNowhere(ToyReader):
    def read(self, inputs):
        (trace,) = super().read(inputs)
        kernels = np.full(3, 7, np.int32)
        return (attrs.evolve(trace, dispatches=attrs.evolve(trace.dispatches, kernel=kernels)),)


class Ragged(ToyReader):
    def read(self, inputs):
        (trace,) = super().read(inputs)
        return (attrs.evolve(trace, dispatches=attrs.evolve(trace.dispatches, agent=np.zeros(9, np.int32))),)


class Misremembering(ToyReader):
    def read(self, inputs):
        (trace,) = super().read(inputs)
        return (
            attrs.evolve(trace, source=TraceSource("toy", "toy 1", (str(inputs.paths[0]),), ("0" * 64,))),
        )


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (RaisingInClaim(), "claim\\(\\) raised"),
        (Blind(), "does not claim its own sample"),
        (Twice(), "claims one file twice"),
        (Unprepared(), "read\\(\\) of .* raised"),
        (Nameless(), "does not name the file"),
        (LeavingLitter(), "changed the file"),
        (Unsorted(), "not in the order"),
        (PointingNowhere(), "kernel points outside"),
        (Misremembering(), "another SHA-256"),
        (Ragged(), "columns of dispatches have different lengths"),
    ],
)
def test_a_bad_reader_fails(sample, scratch, reader, message):
    with pytest.raises(ContractViolation, match=message):
        assert_reader(reader, sample, scratch)
