"""``rpl devices``: devices that installed plugins know, their ceilings, and what can be counted on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rpl_core.model.device import CeilingOrigin, DeviceModel, Quantity
    from rpl_core.plugins.host import Contribution

__all__ = ["devices"]

_UNKNOWN = "-"
_FACTS = (
    *("architecture", "partition", "compute_units", "xcd_count", "simd_per_cu", "wave_size"),
    *("max_waves_per_simd", "lds_bytes_per_cu", "clock_mhz", "l2_bytes", "l2_channels", "llc_bytes"),
)
#: What an analysis asks a device for; whatever of it has no quantity can't be counted there.
_WANTED = {
    "hbm_bytes": "bytes beyond L2",
    "l2_bytes": "bytes between L1 and L2",
    "vl1d_bytes": "bytes of the first vector cache",
    "lds_bytes_moved": "bytes of LDS",
    "flops": "floating-point operations",
    "l2_hit_rate": "hit rate of L2",
    "vl1d_hit_rate": "hit rate of the first vector cache",
    "active_lanes": "active lanes",
    "valu_utilization": "utilisation of the vector units",
    "mfma_utilization": "utilisation of the matrix units",
}


@click.group("devices", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def devices(context: click.Context, as_json: bool) -> None:
    """List the devices that installed plugins know, and the packages that know others.

    `rpl devices info NAME` shows one of them, or an architecture: its ceilings with their sources, what can
    be counted and what cannot.

    \b
    rpl devices info MI300X
    """
    if context.invoked_subcommand is not None:
        return
    from rpl_core.plugins.entry_points import missing_providers

    session = session_of(context)
    known = session.host.catalog.devices().contributions
    absent = missing_providers("devices")
    if as_json:
        rows = [_document(device) for device in known]
        session.output.json({"devices": rows, "not_installed": absent})
        return
    columns = ("DEVICE", "ARCHITECTURE", "PRODUCT", "CU", "GB/S", "GFLOP/S F32", "PLUGIN")
    session.output.table(columns, [_table_row(device) for device in known])
    for package in sorted(set(absent.values())):
        names = ", ".join(name for name in absent if absent[name] == package)
        session.output.note(f"{names}: pip install {package}")


@devices.command("info")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show_device(context: click.Context, name: str, as_json: bool) -> None:
    """Show all that is known of the device or architecture NAME, each figure with its source."""
    session = session_of(context)
    wanted = _devices_called(name, session.host.catalog.devices().contributions)
    if as_json:
        session.output.json({"devices": [_document(device, whole=True) for device in wanted]})
        return
    for index, device in enumerate(wanted):
        if index:
            session.output.line()
        for line in _lines(device.value):
            session.output.line(line)


def _devices_called(
    name: str, known: Sequence[Contribution[DeviceModel]]
) -> Sequence[Contribution[DeviceModel]]:
    """The product of that name, else the products of that architecture."""
    wanted = name.lower()
    products = [device for device in known if device.value.name.lower() == wanted]
    matching = products or [device for device in known if device.value.architecture.lower() == wanted]
    if matching:
        return matching
    from rpl_core.errors import MissingError
    from rpl_core.plugins.entry_points import missing_provider
    from rpl_core.text import did_you_mean

    package = missing_provider("devices", wanted)
    names = [text for device in known for text in (device.value.name, device.value.architecture)]
    raise MissingError(
        f"no installed plugin knows the device {name!r}{did_you_mean(name, names)}",
        next_step=f"pip install {package}" if package else "`rpl devices` lists those that are known",
    )


def _table_row(contribution: Contribution[DeviceModel]) -> tuple[str, ...]:
    from rpl_core.model.device import CeilingOrigin, Pipe

    device = contribution.value
    memory = device.memory_ceiling("hbm", CeilingOrigin.SPEC)
    compute = device.compute_ceiling("F32", Pipe.VALU, CeilingOrigin.SPEC)
    return (
        device.name,
        device.architecture,
        device.product,
        _UNKNOWN if device.compute_units is None else str(device.compute_units),
        _UNKNOWN if memory is None else f"{memory.peak_gbps:g}",
        _UNKNOWN if compute is None else f"{compute.peak_gflops:.0f}",
        contribution.plugin,
    )


def _lines(device: DeviceModel) -> Iterable[str]:
    """As people read it: facts, reasons for unknown ones, ceilings, what can be counted."""
    from rpl_core.cli.output import terminal_width
    from rpl_core.text import format_table

    facts = [("device", f"{device.name}: {device.product}")]
    facts += [
        (name.replace("_", " "), _UNKNOWN if (v := getattr(device, name)) is None else str(v))
        for name in _FACTS
    ]
    facts.append(("source", device.source))
    width = max(len(name) for name, _ in facts)
    yield from (f"{name:{width}}  {value}" for name, value in facts)
    yield from (f"{'unknown':{width}}  {reason}" for reason in device.unknown_facts)
    ceilings = [
        *(
            (f"{c.data_type} {c.pipe.value}", f"{c.peak_gflops:.1f} GFLOP/s", c.origin, c.source)
            for c in device.compute_ceilings
        ),
        *((c.level, f"{c.peak_gbps:.1f} GB/s", c.origin, c.source) for c in device.memory_ceilings),
    ]
    yield ""
    if ceilings:
        rows = [(what, rate, origin.value, source) for what, rate, origin, source in ceilings]
        yield format_table(("CEILING", "RATE", "ORIGIN", "SOURCE"), rows, width=terminal_width())
    else:
        yield "no ceilings: no source at hand states a rate"
    yield ""
    counted = [
        (quantity.name, quantity.unit, _exactness(quantity, device))
        for quantity in device.counter_map.quantities
    ]
    yield format_table(("COUNTED", "UNIT", "AT BEST"), counted, width=terminal_width())
    yield from (f"not counted: {what}" for what in _not_counted(device))


def _exactness(quantity: Quantity, device: DeviceModel) -> str:
    """That of the preferred formula; a sum is worth what its least exact part is."""
    if quantity.formulas:
        return quantity.formulas[0].exactness.value
    parts = {part.name: part for part in device.counter_map.quantities}
    of_parts = {_exactness(parts[name], device) for name in quantity.sum_of if name in parts}
    return of_parts.pop() if len(of_parts) == 1 else "by part"


def _not_counted(device: DeviceModel) -> list[str]:
    counted = {quantity.name for quantity in device.counter_map.quantities}
    return [what for name, what in _WANTED.items() if name not in counted]


def _document(contribution: Contribution[DeviceModel], *, whole: bool = False) -> dict[str, Any]:
    device = contribution.value
    document: dict[str, Any] = {"name": device.name, "product": device.product, "plugin": contribution.plugin}
    document |= {name: getattr(device, name) for name in _FACTS}
    document["chip_ids"] = list(device.chip_ids)
    if not whole:
        return document
    return document | {
        "source": device.source,
        "unknown_facts": list(device.unknown_facts),
        "compute_ceilings": [
            {
                "data_type": c.data_type,
                "pipe": c.pipe.value,
                "gflops": c.peak_gflops,
                **_origin(c.origin, c.source),
            }
            for c in device.compute_ceilings
        ],
        "memory_ceilings": [
            {"level": c.level, "gbps": c.peak_gbps, **_origin(c.origin, c.source)}
            for c in device.memory_ceilings
        ],
        "counted": {
            quantity.name: {"unit": quantity.unit, "at_best": _exactness(quantity, device)}
            for quantity in device.counter_map.quantities
        },
        "not_counted": _not_counted(device),
        "recommended_counters": list(device.counter_map.recommended),
    }


def _origin(origin: CeilingOrigin, source: str) -> dict[str, str]:
    return {"origin": origin.value, "source": source}
