"""Numbers of configurations from their code objects: registers, LDS, waves and predicted occupancy.

A code object says what a configuration costs before it has run: two that differ in one parameter may share
their registers, or spill. Nothing here was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_codeobject.occupancy import (
    ArchitectureOf,
    CodeOccupancy,
    LaunchAssumption,
    LaunchedKernel,
    compiled_occupancy,
)
from rpl_core.errors import RplError, UsageError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces.space import SearchSpace
    from rpl_autotune.space.expressions import Expression

__all__ = ["CodeFeatures", "CodeRequest", "code_features"]

#: What a kernel costs; of several kernels in one file the largest counts.
_COSTS = ("vgprs", "agprs", "sgprs", "lds_bytes", "scratch_bytes", "vgpr_spills")
_WAVES, _OCCUPANCY, _UNKNOWN = "waves per workgroup", "waves per SIMD", "code unknown"


@frozen(eq=False)
class CodeRequest:
    """``files`` has the code of each configuration, ``None`` where there is none.

    ``kernel`` names one kernel, without it all count. The expressions are the work-items of a workgroup, and
    LDS that the launch adds; without the first the largest permitted workgroup is taken.
    """

    files: Sequence[Path | None]
    kernel: str | None = None
    workgroup_size: Expression | None = None
    dynamic_lds: Expression | None = None


@frozen(eq=False)
class CodeFeatures:
    """Columns by name, and one line per problem. ``unknown`` counts configurations without numbers."""

    columns: Mapping[str, tuple[float, ...]]
    unknown: int
    problems: tuple[str, ...] = ()


@attrs.define
class _Codes:
    """Launches of the kernels in each file, read once however many configurations share it."""

    request: CodeRequest
    problems: dict[str, None] = attrs.field(factory=dict)
    _kernels: dict[Path, tuple[LaunchedKernel, ...]] = attrs.field(factory=dict)

    def launches(self, space: SearchSpace, index: int) -> tuple[LaunchedKernel, ...]:
        path = self.request.files[index]
        if path is None:
            return ()
        if path not in self._kernels:
            self._kernels[path] = self._read(path)
        values = space.values(index)
        size = _whole("--workgroup-size", self.request.workgroup_size, values, 1)
        lds = _whole("--dynamic-lds", self.request.dynamic_lds, values, 0) or 0
        shape = LaunchAssumption(size, lds)
        return tuple(shape.of(one.kernel, one.architecture) for one in self._kernels[path])

    def _read(self, path: Path) -> tuple[LaunchedKernel, ...]:
        from rpl_codeobject.reading.read import read_code_objects

        try:
            codes = read_code_objects(path)
        except RplError as error:
            self.problems[error.one_line()] = None
            return ()
        plain = LaunchAssumption()
        launched = [plain.of(kernel, code.architecture) for code in codes for kernel in code.kernels]
        wanted = self.request.kernel
        if wanted is not None:
            launched = [one for one in launched if wanted in (one.kernel.name, one.kernel.symbol)]
        if not launched:
            self.problems[f"{path} has no kernel{'' if wanted is None else f' {wanted!r}'}"] = None
        return tuple(launched)


def _whole(
    option: str, expression: Expression | None, values: Mapping[str, bool | int | float | str], least: int
) -> int | None:
    if expression is None:
        return None
    value = expression.value(values)
    if isinstance(value, (int, float)) and value == int(value) and value >= least:
        return int(value)
    shown = ", ".join(f"{name}={value}" for name, value in values.items())
    raise UsageError(
        f"{option} {expression.text!r} is {value!r} for {shown}, not a whole number from {least}"
    )


def code_features(space: SearchSpace, request: CodeRequest, architecture_of: ArchitectureOf) -> CodeFeatures:
    """Columns for ``space``. What is unknown gets the median of its column, and another column says so."""
    codes = _Codes(request)
    launches = [codes.launches(space, index) for index in range(len(space))]
    distinct = dict.fromkeys(one for some in launches for one in some)
    occupancies = {one: compiled_occupancy(one, architecture_of(one.architecture)) for one in distinct}
    reasons = {answer.reason for answer in occupancies.values() if answer.waves_per_simd is None}
    rows = [_numbers(some, occupancies) for some in launches]
    unknown = sum(not row for row in rows)
    if unknown == len(rows):
        return CodeFeatures({}, unknown, tuple(codes.problems))
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _filled([row.get(name) for row in rows]) for name in names}
    if unknown:
        columns[_UNKNOWN] = tuple(float(not row) for row in rows)
    problems = (*codes.problems, *(f"occupancy is unknown: {reason}" for reason in sorted(map(str, reasons))))
    return CodeFeatures(columns, unknown, problems)


def _numbers(
    launches: Sequence[LaunchedKernel], occupancies: Mapping[LaunchedKernel, CodeOccupancy]
) -> dict[str, float]:
    """What is known of one configuration: the largest cost and the lowest occupancy of its kernels."""
    numbers: dict[str, float] = {}
    for one in launches:
        waves = occupancies[one].waves_per_simd
        costs = {name: getattr(one.kernel, name) for name in _COSTS}
        costs["lds_bytes"] = one.lds_bytes
        costs[_WAVES] = math.ceil(one.workgroup_size / one.kernel.wavefront_size)
        for name, value in costs.items():
            if value is not None:
                numbers[name] = max(numbers.get(name, 0.0), float(value))
        if waves is not None:
            numbers[_OCCUPANCY] = min(numbers.get(_OCCUPANCY, math.inf), float(waves))
    return numbers


def _filled(values: Sequence[float | None]) -> tuple[float, ...]:
    known = sorted(value for value in values if value is not None)
    middle = known[len(known) // 2]
    return tuple(middle if value is None else value for value in values)
