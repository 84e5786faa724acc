"""The contract of a device model: facts with sources, unknown facts named, counters that fit their blocks."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from rpl_analysis.roofline.vocabulary import typed_work
from rpl_core.errors import BadDataError
from rpl_testkit.contracts.architecture import assert_architecture
from rpl_testkit.contracts.violation import ContractViolation, demand, demand_kind, demand_positive

if TYPE_CHECKING:
    from rpl_core.model.device import CounterMap, DeviceModel, Formula, Quantity

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
    _check_ceilings(model, subject)
    _check_counter_map(model.counter_map, subject)
    _check_work(model.counter_map, subject)
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


def _check_ceilings(model: DeviceModel, subject: str) -> None:
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


def _check_work(counters: CounterMap, subject: str) -> None:
    """Data types count quantities that exist, each once; so does the traffic of memory."""
    known = {quantity.name for quantity in counters.quantities}
    work = [one.quantity for one in typed_work(counters)]
    _demand_unique(work, subject, "work of quantity")
    unknown = [name for name in work if name not in known]
    demand(not unknown, subject, f"work counts unknown quantities: {unknown}")
    demand(bool(counters.memory_bytes), subject, "memory_bytes names at least one quantity")


def _check_quantity(quantity: Quantity, known: set[str], subject: str) -> None:
    demand(bool(quantity.unit.strip()), subject, "a quantity has a unit")
    demand(bool(quantity.formulas or quantity.sum_of), subject, "a quantity has a formula or is a sum")
    unknown = [part for part in quantity.sum_of if part not in known]
    demand(not unknown, subject, f"it is a sum of unknown quantities: {unknown}")
    for formula in quantity.formulas:
        _check_formula(formula, f"{subject}, formula {formula.expression!r}")


def _check_formula(formula: Formula, subject: str) -> None:
    from rpl_analysis.counters.expressions import parse_expression
    from rpl_core.model.origin import Exactness

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
