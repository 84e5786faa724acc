"""Samples of one process as columns, with the places in the code that they name.

Every name here is that of rocprofiler-sdk (``include/rocprofiler-sdk/pc_sampling.h``) without its long prefix
and in small letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from rpl_core.interfaces.analyzer import Fact, KernelFigure
from rpl_core.values import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rpl_core.model.metric import Origin
    from rpl_core.model.trace import Int32Column, Int64Column

    Int8Column = NDArray[np.int8]
    Int16Column = NDArray[np.int16]
    from rpl_pcsampling.contract import SampledKernel

#: Key of the samples in ``Trace.extras``.
EXTRA = "pc_samples"
#: What a column holds where the recording says nothing, or another name than those below.
UNKNOWN = -1

#: Why a wave issued nothing; ``none`` is the value 0 of the hardware.
STALL_REASONS = (
    *("none", "no_instruction_available", "alu_dependency", "waitcnt", "internal_instruction"),
    *("barrier_wait", "arbiter_not_win", "arbiter_win_ex_stall", "other_wait", "sleep_wait"),
)
#: What kind of instruction a wave issued.
INSTRUCTION_TYPES = (
    *("none", "valu", "matrix", "scalar", "tex", "lds", "lds_direct", "flat", "export", "message", "barrier"),
    *("branch_not_taken", "branch_taken", "jump", "other", "no_inst", "dual_valu"),
)


class Method(str, Enum):
    """How waves are sampled.

    HOST_TRAP interrupts waves by software: a sample may name an instruction up to two away from the one that
    cost the time, and tells nothing of stalls. STOCHASTIC is done by hardware, without skid.
    """

    STOCHASTIC = "stochastic"
    HOST_TRAP = "host_trap"


class Position(str, Enum):
    """What tells two instructions apart."""

    OFFSET = "offset"  # in the code object
    TEXT = "text"  # the instruction's text and its source comment: equal ones count as one


@frozen
class Place:
    """One instruction. ``source`` is the compiler's ``path:line``, the innermost frame of inlined code first.

    ``instruction`` is ``None`` where the profiler could not decode it (a kernel of the runtime, or code that
    changes itself).
    """

    instruction: str | None
    source: str | None = None
    code_object: int | None = None
    offset: int | None = None


@frozen(eq=False)
class PcSamples:
    """One entry per sample in every column; ``UNKNOWN`` where the recording says nothing.

    ``kernel`` and ``place`` are indices into ``kernels`` and ``places``; ``unnamed`` says why samples have no
    kernel. ``lanes`` counts the active lanes of the wave, ``waves`` the waves on the compute unit. ``issued``
    is 1 or 0; ``reason`` and ``instruction_type`` are indices into the names above.
    """

    method: Method
    position: Position
    origin: Origin
    kernels: tuple[str, ...]
    places: tuple[Place, ...]
    kernel: Int32Column
    place: Int32Column
    dispatch_id: Int64Column
    timestamp_ns: Int64Column
    lanes: Int8Column
    issued: Int8Column
    reason: Int8Column
    instruction_type: Int8Column
    waves: Int16Column
    unnamed: str | None = None
    left_out: int = 0  # rows of the file that are no samples
    every: int | None = None  # cycles (stochastic) or microseconds between samples; the files do not say

    def __len__(self) -> int:
        return int(self.place.shape[0])


# The facts that PC samples give, by key.

#: Kernel name -> its samples, the most sampled first; of samples without a kernel under the empty name.
PC_SAMPLES: Fact[Mapping[str, tuple[SampledKernel, ...]]] = Fact("pc_samples", Mapping)
#: Part of the samples of a kernel in which the wave issued its instruction.
SAMPLED_ISSUE = KernelFigure("sampled_issue_fraction")
#: Stall reason -> part of the samples in which the wave did not issue for it: ``sampled_waitcnt_fraction``...
SAMPLED_STALLS: Mapping[str, KernelFigure] = {
    reason: KernelFigure(f"sampled_{reason}_fraction") for reason in STALL_REASONS[1:]
}
