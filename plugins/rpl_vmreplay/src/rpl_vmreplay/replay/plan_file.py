"""The plan that ``rpl-replay`` carries out, and the files that it names (native/replay/plan/plan.h)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rpl_vmreplay.capture.files import KERNARG
from rpl_vmreplay.interfaces.replayer import MemoryEdit
from rpl_vmreplay.replay.captured_code import (
    captured_code,
    fitting_arguments,
    other_code,
    stale_arguments,
)
from rpl_vmreplay.replay.code_pointers import code_pointers, image_of, may_call_pointers, told_names

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_vmreplay.capture.files import Region
    from rpl_vmreplay.capture.plain_memory import PlainMemory
    from rpl_vmreplay.interfaces.replayer import ReplayRequest, ReserveRequest
    from rpl_vmreplay.replay.captured_code import LaunchCode

HASHES = "hashes"
KEPT, KEPT_AGAINST = "kept.bin", "kept-against.bin"
VARIABLES, VARIABLES_AGAINST = "variables.bin", "variables-against.bin"
PLAN = "plan.json"
#: Bytes in a second (chosen): a fourth of one lane of PCI Express 3.0.
_SLOWEST_COPY = 256 << 20


class ReplayPlan:
    """Everything that the program needs to know, and what of it the result has to tell."""

    def __init__(self, request: ReplayRequest, memory: PlainMemory, folder: Path) -> None:
        self._request, self._memory, self._folder = request, memory, folder
        self._capture = memory.capture
        own = self._own = captured_code(self._capture)
        override = request.code_object
        self._code = own if override is None else other_code(self._capture, override)
        self._against = None if request.against is None else other_code(self._capture, request.against)
        others = [one for one in (self._code, self._against) if one is not None and one is not own]
        self._filled = fitting_arguments(self._capture, *others)
        stale = stale_arguments(self._capture, own)
        self.stale = tuple(stale)
        self.patched = self.stale if request.patch_hidden_args else ()
        self._zeroed = [stale[name] for name in self.patched]

    @property
    def deadline_s(self) -> float | None:
        """Of the whole replay: each launch has its limit, and so have preparation and end together.

        Beside them there is time for copies, of all memory before each launch and of twice as much around
        them, at a rate that the slowest link exceeds.
        """
        request = self._request
        if request.time_limit_s is None:
            return None
        pairs = 1 if request.against is None else 2
        launches = (request.iterations + request.warm_ups + pairs - 1) * pairs
        rounds = 2 + (launches if request.recopy else 1)
        return request.time_limit_s * (launches + 1) + rounds * self._capture.bytes / _SLOWEST_COPY

    def write(self) -> Path:
        """The plan. Raises what reading the capture raises."""
        (self._folder / HASHES).mkdir()
        path = self._folder / PLAN
        path.write_text(json.dumps(self._document()), encoding="utf-8")
        return path

    def _document(self) -> dict[str, Any]:
        request, capture = self._request, self._capture
        limit = request.time_limit_s
        return {
            "iterations": request.iterations,
            "warm_ups": request.warm_ups,
            "recopy": request.recopy,
            "time_limit_ns": None if limit is None else round(limit * 1e9),
            "deadline_ns": None if self.deadline_s is None else round(self.deadline_s * 1e9),
            "isa": capture.dispatch.isa_name,
            "captured_isa": self._own.code.target,
            "code_place": self._code_place(),
            "gpu": 0 if capture.extras is None else capture.extras.agent.number or 0,
            "cold_caches": request.cold_caches,
            "kernel": self._kernel(self._code, captured=request.code_object is None),
            "other": None if self._against is None else self._kernel(self._against, captured=False),
            "other_first": list(request.against_first),
            "regions": [self._region(one) for one in capture.regions],
            "edits": [self._edit(number, one) for number, one in enumerate(self._edits())],
            "variables": self._variables(),
            "keep": [{"address": one.address, "size": one.size} for one in request.keep],
            "hash_folder": str(self._folder / HASHES) if request.hashes else "",
            "keep_file": str(self._folder / KEPT),
            "keep_other_file": str(self._folder / KEPT_AGAINST),
            "variables_file": str(self._folder / VARIABLES),
            "variables_other_file": str(self._folder / VARIABLES_AGAINST),
        }

    def _code_place(self) -> dict[str, Any] | None:
        """Where the captured code was, and what leads there: it is loaded there again where that can be."""
        request, image = self._request, image_of(self._capture, self._own)
        if image is None or request.code_object is not None or request.against is not None:
            return None
        names = code_pointers(self._memory, image) if may_call_pointers(self._own) else ()
        return {
            "base": image.base,
            "address": image.base + image.begin,
            "size": image.end - image.begin,
            "kernel_object": self._capture.dispatch.kernel_object or 0,
            "pointers": told_names(names),
        }

    def _kernel(self, code: LaunchCode, *, captured: bool) -> dict[str, Any]:
        launch, extras = self._capture.dispatch, self._capture.extras
        segment = None if extras is None else extras.dispatch.group_segment
        dynamic = None
        if segment is not None and segment.fixed is not None:
            dynamic = max(segment.launched - segment.fixed, 0)
        plain = self._folder / ("other.hsaco" if code is self._against else "kernel.hsaco")
        plain.write_bytes(code.code.elf)
        address = None if extras is None or self._filled is not None else extras.dispatch.kernarg_address
        size = launch.kernarg_size if self._filled is None else len(self._filled)
        return {
            "name": self._capture.kernel_name,
            "code_object": str(plain),
            "isa": code.code.target,
            "captured_code": captured,
            "grid": launch.grid,
            "workgroup": launch.block,
            "setup": (extras.dispatch.setup if extras is not None else None) or 3,
            "group_bytes": launch.group_segment_size,
            "private_bytes": launch.private_segment_size,
            "dynamic_group_bytes": dynamic,
            "kernarg_file": str(self._kernarg()),
            "kernarg_bytes": size,
            "kernarg_address": address,
        }

    def _kernarg(self) -> Path:
        content = bytearray(self._filled or (self._capture.folder / KERNARG).read_bytes())
        for offset, size in self._zeroed:
            content[offset : offset + size] = bytes(size)
        path = self._folder / KERNARG
        path.write_bytes(content)
        return path

    def _edits(self) -> list[MemoryEdit]:
        extras = self._capture.extras
        address = None if extras is None else extras.dispatch.kernarg_address
        if address is None:
            return list(self._request.edits)
        zeroed = [MemoryEdit(address + offset, bytes(size)) for offset, size in self._zeroed]
        return [*zeroed, *self._request.edits]

    def _edit(self, number: int, edit: MemoryEdit) -> dict[str, Any]:
        path = self._folder / f"edit-{number}.bin"
        path.write_bytes(edit.data)
        region = self._memory.region_of(edit.address)
        gpu = 0 if region is None else self._gpu_of(region)
        return {"address": edit.address, "size": len(edit.data), "file": str(path), "gpu": gpu}

    def _region(self, region: Region) -> dict[str, Any]:
        path = self._memory.path_of(region).absolute()
        return {
            "address": region.base,
            "size": region.size,
            "file": str(path),
            "gpu": self._gpu_of(region),
        }

    def _gpu_of(self, region: Region) -> int:
        """The number of the GPU that the memory belonged to; host memory goes to that of the launch."""
        extras, told = self._capture.extras, self._capture.extras_of(region)
        if extras is None or extras.agent.number is None:
            return 0
        nodes = extras.agent.node, None if told is None or told.agent is None else told.agent.node
        if None in nodes or told is None or told.kind not in ("device_pool", "vmem"):
            return extras.agent.number
        # GPUs are numbered in the order of their nodes, and follow the CPUs.
        return max((nodes[1] or 0) - (nodes[0] or 0) + extras.agent.number, 0)

    def _variables(self) -> list[dict[str, Any]]:
        folder, told = self._capture.folder.absolute(), self._capture.told_variables
        return [
            {
                "name": one.name,
                "size": one.size,
                "file": str(folder / one.blob),
                "address": told[one.blob].address if one.blob in told else None,
            }
            for one in self._capture.variables
        ]


def write_reserve_plan(request: ReserveRequest, folder: Path) -> Path:
    path = folder / PLAN
    ranges = [{"address": one.address, "size": one.size} for one in request.ranges]
    path.write_text(json.dumps({"isa": request.isa or "", "reserve": ranges}), encoding="utf-8")
    return path
