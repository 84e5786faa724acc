"""What a torch.profiler trace says beside its kernels: operators, Python frames, links and collectives.

One ``TorchProcess`` per file stands in ``Trace.extras[TORCH]``. It names nothing by row of the trace: work is
found by correlation id, so that it survives merging and restricting traces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.analyzer import Fact
from rpl_core.values import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rpl_torch.contracts import TorchPart

    Int32Column = NDArray[np.int32]
    Int64Column = NDArray[np.int64]

#: Key of the processes in ``Trace.extras``.
TORCH = "torch"


@frozen
class Inputs:
    """What one kind of call was given, as JSON text; empty where shapes were not recorded.

    ``dims`` and ``types`` have one entry per argument, ``concrete`` the values of scalars, kept for operators
    whose work depends on them.
    """

    dims: bytes = b""
    types: bytes = b""
    concrete: bytes = b""


@frozen(eq=False)
class Operators:
    """Calls of operators and ranges of ``record_function``, shape (n,), by (thread, begin, longest first)."""

    name: Int32Column  # index into TorchProcess.names
    inputs: Int32Column  # index into TorchProcess.inputs
    thread_id: Int64Column
    external_id: Int64Column  # by which launches name it
    is_range: NDArray[np.bool_]  # of record_function, not an operator
    begin_ns: Int64Column
    end_ns: Int64Column

    def __len__(self) -> int:
        return int(self.begin_ns.shape[0])


@frozen(eq=False)
class Frames:
    """Python functions while they ran, shape (n,), by (thread, begin, longest first)."""

    name: Int32Column
    thread_id: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column

    def __len__(self) -> int:
        return int(self.begin_ns.shape[0])


@frozen(eq=False)
class Flows:
    """Links from a forward operator to its backward one: each end by its thread and time."""

    forward_thread: Int64Column
    forward_ns: Int64Column
    backward_thread: Int64Column
    backward_ns: Int64Column


@frozen
class CollectiveCall:
    """One kernel of a collective, by its correlation id. What the trace does not say is ``None``."""

    correlation_id: int
    operation: str
    group: str | None
    ranks: tuple[int, ...]
    group_size: int | None
    in_elements: int | None
    out_elements: int | None
    dtype: str | None
    number: int | None  # of the operation in its group


@frozen(eq=False)
class TorchProcess:
    """One rank. ``guid`` and ``pid`` name the process of the trace.

    ``launch_correlation`` ascends; ``launch_external`` is the operator's id of each (-1 unknown).
    """

    guid: str
    pid: int
    rank: int | None
    world_size: int | None
    names: tuple[str, ...]
    inputs: tuple[Inputs, ...]
    operators: Operators
    frames: Frames
    flows: Flows
    launch_correlation: Int64Column
    launch_external: Int64Column
    collectives: tuple[CollectiveCall, ...]
    has_shapes: bool
    has_stacks: bool
    has_modules: bool


# The fact that torch.profiler traces give.

#: ``None`` for recordings of other profilers.
TORCH_REPORT: Fact[TorchPart] = Fact("torch")
