"""The contract of an architecture: limits that fit each other, rates above zero, a source for each part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_testkit.contracts.violation import demand, demand_positive

if TYPE_CHECKING:
    from rpl_core.model.architecture import Architecture, OccupancyLimits


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
