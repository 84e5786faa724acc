"""Contracts of what records and reads: device models with their architectures, collectors, readers."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import attrs

from rpl_analysis.roofline.kernel import typed_work
from rpl_core.errors import BadDataError, MissingError
from rpl_core.files import sha256_of
from rpl_core.model.device import Architecture, CounterMap, DeviceModel, Formula, OccupancyLimits, Quantity
from rpl_core.text import counted
from rpl_testkit.contracts.checks import (
    ContractViolation,
    demand,
    demand_kind,
    demand_positive,
    demand_reason_or_none,
    same_value,
)

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import CollectionPlan, Collector, CollectRequest, PlannedPass
    from rpl_core.interfaces.reader import InputSet, Reader
    from rpl_core.model.trace import Trace


def assert_architecture(architecture: Architecture) -> None:
    """Check the facts of one architecture."""
    subject = f"architecture {architecture.name}"
    _cited(architecture.source, subject, "the architecture")
    if architecture.occupancy is not None:
        _check_limits(architecture.occupancy, subject)
    for packed in architecture.packed:
        what = f"packed {packed.data_type}"
        demand(packed.operations_per_counted >= 1, subject, f"{what}: at least one operation is counted")
        _cited(packed.source, subject, what)
    if architecture.matrix_rates is not None:
        for data_type, rate in architecture.matrix_rates.operations_per_cycle:
            demand_positive(rate, subject, f"matrix rate of {data_type}")
        _cited(architecture.matrix_rates.source, subject, "matrix_rates")
    quirks = architecture.record_quirks
    if quirks != attrs.evolve(type(quirks)(), source=quirks.source):
        _cited(quirks.source, subject, "record_quirks")


def _check_limits(limits: OccupancyLimits, subject: str) -> None:
    _cited(limits.source, subject, "occupancy")
    for field in attrs.fields(type(limits)):
        value = getattr(limits, field.name)
        if isinstance(value, int) and not isinstance(value, bool):
            demand_positive(value, subject, f"occupancy.{field.name}")
    demand(bool(limits.register_files), subject, "occupancy.register_files must have a file")
    sizes = [file.wave_size for file in limits.register_files]
    demand(len(set(sizes)) == len(sizes), subject, f"register files share a wave size: {sizes}")
    scalar = (limits.scalar_file,) if limits.scalar_file is not None else ()
    for file in (*limits.register_files, *scalar):
        for name in ("registers", "granule", "most_used"):
            demand_positive(getattr(file, name), subject, f"{type(file).__name__}.{name}")
        demand(file.granule <= file.registers, subject, "a granule is no larger than its file")
    demand(
        limits.max_lds_bytes_per_workgroup <= limits.lds_bytes_per_cu * limits.cus_per_workgroup_processor,
        subject,
        "a workgroup's LDS fits where it runs",
    )


def _cited(source: str, subject: str, what: str) -> None:
    demand(bool(source.strip()), subject, f"{what} must cite its source")


# The contract of a device model: facts with sources, unknown facts named, counters that fit their blocks.

#: Facts that may be ``None``, each then with its reason in ``unknown_facts``.
_NULLABLE = (
    "compute_units",
    "xcd_count",
    "clock_mhz",
    "l2_bytes",
    "llc_bytes",
    "l2_channels",
    "fp32_valu_width",
)
_REQUIRED = ("simd_per_cu", "wave_size", "max_waves_per_simd", "lds_bytes_per_cu")
_MEMORY_LEVELS = {"hbm", "llc", "l2", "vl1d", "lds"}


def assert_device_model(model: DeviceModel) -> None:
    """Check one device model."""
    subject = demand_kind("rpl_device_models", model)
    demand(
        bool(re.fullmatch(r"[a-z0-9][a-z0-9._-]*", model.architecture)),
        subject,
        f"architecture {model.architecture!r} is not one word in lower case, as recordings write it",
    )
    for field in _REQUIRED:
        demand_positive(getattr(model, field), subject, field)
    for field in _NULLABLE:
        _check_fact(model, field, subject)
    for chip_id in model.chip_ids:
        demand(isinstance(chip_id, int) and 0 < chip_id < 0x10000, subject, f"chip id {chip_id!r} is 16 bits")
    demand(bool(model.source.strip()), subject, "source must say where the facts come from")
    for compute in model.compute_ceilings:
        what = f"{compute.data_type} {compute.pipe.value} {compute.origin.value}"
        demand_positive(compute.peak_gflops, subject, f"peak_gflops of {what}")
        demand(bool(compute.source.strip()), subject, f"ceiling {what} must cite its source")
    for memory in model.memory_ceilings:
        demand(memory.level in _MEMORY_LEVELS, subject, f"memory level {memory.level!r} is unknown")
        demand_positive(memory.peak_gbps, subject, f"peak_gbps of {memory.level} {memory.origin.value}")
        demand(bool(memory.source.strip()), subject, f"ceiling {memory.level} must cite its source")
    compute_keys = [(c.data_type, c.pipe, c.origin, c.source) for c in model.compute_ceilings]
    memory_keys = [(c.level, c.origin, c.source) for c in model.memory_ceilings]
    _demand_unique(compute_keys, subject, "compute ceiling")
    _demand_unique(memory_keys, subject, "memory ceiling")
    _check_counter_map(model.counter_map, subject)
    # Data types count quantities that exist, each once; so does the traffic of memory.
    counters = model.counter_map
    known = {quantity.name for quantity in counters.quantities}
    work = [one.quantity for one in typed_work(counters)]
    _demand_unique(work, subject, "work of quantity")
    unknown = [name for name in work if name not in known]
    demand(not unknown, subject, f"work counts unknown quantities: {unknown}")
    demand(bool(counters.memory_bytes), subject, "memory_bytes names at least one quantity")
    if model.architecture_facts is not None:
        assert_architecture(model.architecture_facts)
        # A device that stands for another, such as an emulated one, runs code of that one's instruction set.
        demand(
            model.architecture_facts.name in (model.architecture, model.architecture.partition("-")[0]),
            subject,
            f"architecture_facts are those of {model.architecture_facts.name}, not of {model.architecture}",
        )


def _check_fact(model: DeviceModel, field: str, subject: str) -> None:
    value = getattr(model, field)
    if value is not None:
        demand_positive(value, subject, field)
        return
    demand(
        any(field in reason for reason in model.unknown_facts),
        subject,
        f"{field} is unknown, so unknown_facts must name it and say why",
    )


def _demand_unique(keys: list[Any], subject: str, what: str) -> None:
    repeated = [key for key, count in Counter(keys).items() if count > 1]
    demand(not repeated, subject, f"{what} given twice: {repeated[:1]}")


def _check_counter_map(counters: CounterMap, subject: str) -> None:
    _demand_unique([quantity.name for quantity in counters.quantities], subject, "quantity")
    _demand_unique(list(counters.recommended), subject, "recommended counter")
    names = {quantity.name for quantity in counters.quantities}
    for quantity in counters.quantities:
        _check_quantity(quantity, names, f"{subject}, quantity {quantity.name}")
    for counter in counters.recommended:
        dangerous = [prefix for prefix, _ in counters.dangerous if counter.startswith(prefix)]
        demand(not dangerous, subject, f"recommended counter {counter} is declared dangerous")
        demand(
            not counters.block_limits or _block_of(counters, counter) is not None,
            subject,
            f"no block prefix matches recommended counter {counter}",
        )
    for group in counters.same_pass:
        for block, needed in Counter(_block_of(counters, counter) for counter in group).items():
            limit = counters.block_limits.get(block or "")
            demand(
                limit is None or needed <= limit,
                subject,
                f"{group} can't share a pass: {block} holds {limit}",
            )
    for block, limit in counters.block_limits.items():
        demand_positive(limit, subject, f"limit of block {block}")


def _check_quantity(quantity: Quantity, known: set[str], subject: str) -> None:
    demand(bool(quantity.unit.strip()), subject, "a quantity has a unit")
    demand(bool(quantity.formulas or quantity.sum_of), subject, "a quantity has a formula or is a sum")
    unknown = [part for part in quantity.sum_of if part not in known]
    demand(not unknown, subject, f"it is a sum of unknown quantities: {unknown}")
    for formula in quantity.formulas:
        _check_formula(formula, f"{subject}, formula {formula.expression!r}")


def _check_formula(formula: Formula, subject: str) -> None:
    from rpl_analysis.counters.formulas import parse_expression
    from rpl_core.model.metric import Exactness

    demand(bool(formula.source.strip()), subject, "it must cite its source")
    interval = formula.exactness is Exactness.INTERVAL
    has_upper = formula.upper_expression is not None
    demand(interval == has_upper, subject, "upper_expression belongs to intervals, and to them only")
    refined = (refinement.zero_when for refinement in formula.refinements)
    for expression in filter(None, (formula.expression, formula.upper_expression, *refined)):
        try:
            parse_expression(expression)
        except BadDataError as error:
            raise ContractViolation(f"{subject}: {error.fact}") from None


def _block_of(counters: CounterMap, counter: str) -> str | None:
    matching = [
        (len(prefix), block) for prefix, block in counters.block_prefixes if counter.startswith(prefix)
    ]
    return max(matching)[1] if matching else None


# The contract of a collector: a plan that runs nothing of the user's, and passes kept in their places.


def assert_collector(collector: Collector, scratch: Path) -> None:
    """Check names, ``missing`` and ``plan``; executing passes is left to the collector's own tests.

    In ``scratch`` an application is put that would leave a trace if somebody started it. A collector that
    adds passes to a finished profile is not asked for a plan.
    """
    from rpl_core.interfaces.collector import CollectRequest
    from rpl_core.model.trace import TraceRole

    subject = demand_kind("rpl_collectors", collector)
    reason = collector.missing()
    demand_reason_or_none(reason, subject)
    if collector.role is not TraceRole.TIMING:
        return
    application, started = _application(scratch)
    request = CollectRequest(command=(str(application), "--size", "a b;c"), runs=2)
    try:
        plan = collector.plan(request)
        again = collector.plan(request)
    except MissingError:
        demand(reason is not None, subject, "plan() raises MissingError though missing() says None")
        return
    finally:
        demand(not started.exists(), subject, "plan() started the application")
    demand(same_value(plan, again), subject, "the same request gives two different plans")
    _check_plan(plan, request, 1 if collector.deterministic else request.runs, subject)


def _check_plan(plan: CollectionPlan, request: CollectRequest, runs: int, subject: str) -> None:
    from rpl_core.model.trace import TraceRole

    names = [planned.name for planned in plan.passes]
    writing = [p for p in plan.passes if any("{directory}" in word for word in p.command)]
    directories = [planned.directory for planned in writing]
    demand(len(set(names)) == len(names), subject, f"pass names repeat: {names}")
    demand(
        len(set(directories)) == len(directories),
        subject,
        f"two passes write into one directory: {directories}",
    )
    timing = [planned for planned in plan.passes if planned.role is TraceRole.TIMING]
    demand(len(timing) == runs, subject, f"{counted(runs, 'timing run')} asked for, {len(timing)} planned")
    for planned in plan.passes:
        _check_pass(planned, request, f"{subject}, pass {planned.name}")


def _check_pass(planned: PlannedPass, request: CollectRequest, subject: str) -> None:
    directory = PurePosixPath(planned.directory)
    inside = not directory.is_absolute() and ".." not in directory.parts and planned.directory != ""
    demand(inside, subject, f"directory {planned.directory!r} must lie inside the run directory")
    words = planned.command
    demand(bool(words) and all(isinstance(w, str) for w in words), subject, "command is a tuple of words")
    demand(
        words[-3:] == request.command, subject, "the command must end with the application's words, unchanged"
    )


def _application(scratch: Path) -> tuple[Path, Path]:
    """An executable, and the file that it would write."""
    program, started = scratch / "rpl-contract-application", scratch / "it-was-started"
    program.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(started))}\n", encoding="utf-8")
    program.chmod(0o755)
    return program, started


# The contract of a reader: it recognises by content, never raises for strangers, and changes nothing.


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
            stated = zip(trace.source.paths, trace.source.sha256, strict=False)
            wrong = [path for path, sha256 in stated if sha256 != sha256_of(Path(path))]
            demand(not wrong, subject, f"the trace states another SHA-256 than the file has: {wrong}")
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
    from rpl_core.model.trace import require_sound

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
