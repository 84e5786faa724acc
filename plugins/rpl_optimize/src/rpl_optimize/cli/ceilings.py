"""``rpl ceilings``: the ceilings that an analysis uses, with their origins, and how to measure your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of
from rpl_optimize.cli.measure_ceilings import measure_ceilings

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling

_ORDER = ("spec", "measured", "published")


@click.group("ceilings", invoke_without_command=True)
@click.option("--device", "name", metavar="NAME", help="Device family or product, see `rpl devices`.")
@click.option(
    "--from",
    "recordings",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A run or a recording, whose device is meant; repeatable. Default: the latest run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def ceilings(
    context: click.Context, /, name: str | None, recordings: tuple[Path, ...], as_json: bool
) -> None:
    """List the ceilings of a device, or of the device of a recording.

    Those of a data sheet are called spec, those that a benchmark reached on the machine of the recording or
    on a device of yours measured (`rpl ceilings measure`), those of others published.

    \b
    rpl ceilings --device NAME
    rpl ceilings --from rpl-runs/latest
    rpl ceilings measure --device NAME
    """
    from rpl_core.errors import MissingError, UsageError

    if context.invoked_subcommand is not None:
        if name is not None or recordings or as_json:
            raise UsageError("options belong behind `measure`", next_step="rpl ceilings measure --help")
        return
    session = session_of(context)
    name = session.setting("device", name)
    if not recordings and name is None:
        if not session.latest_run.exists():
            raise UsageError(
                "neither a device nor a recording is named", next_step="rpl ceilings --device NAME"
            )
        recordings = (session.latest_run,)
    device, reason = _device(session, recordings, name)
    if device is None:
        raise MissingError(reason, next_step="name the device with --device; `rpl devices` lists them")
    rows = _rows(device)
    if as_json:
        session.output.json({"device": device.name, "product": device.product, "ceilings": rows})
        return
    session.output.line(f"{device.product} ({device.architecture})")
    columns = ("CEILING", "PIPE", "RATE", "UNIT", "ORIGIN", "SOURCE")
    session.output.table(columns, [_cells(row) for row in rows])


ceilings.add_command(measure_ceilings)


def _device(
    session: Session, recordings: tuple[Path, ...], name: str | None
) -> tuple[DeviceModel | None, str]:
    from rpl_core.ingest.load import load_recording
    from rpl_core.model.recording import Recording
    from rpl_core.pipeline import AnalysisRequest, find_device

    readers = session.host.catalog.readers().contributions if recordings else ()
    recording = load_recording(recordings, readers) if recordings else Recording(traces=())
    device = find_device(AnalysisRequest(device=name), recording.gpu_agents, session.host, recording.ceilings)
    return device.model, device.diagnostics[0].fact if device.diagnostics else "the device is unknown"


def _rows(device: DeviceModel) -> list[dict[str, Any]]:
    """By origin; then memory from the farthest level on and arithmetic, each in the order of the device."""
    memory = (_row(c.level, None, c.peak_gbps, "GB/s", c) for c in device.memory_ceilings)
    compute = (_row(c.data_type, c.pipe.value, c.peak_gflops, "GOP/s", c) for c in device.compute_ceilings)
    return sorted((*memory, *compute), key=lambda row: _ORDER.index(row["origin"]))


def _row(
    name: str, pipe: str | None, rate: float, unit: str, ceiling: ComputeCeiling | MemoryCeiling
) -> dict[str, Any]:
    origin = {"origin": ceiling.origin.value, "source": ceiling.source}
    return {"ceiling": name, "pipe": pipe, "rate": rate, "unit": unit, **origin}


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    rate = f"{row['rate']:,.10g}"
    return (row["ceiling"], row["pipe"] or "-", rate, row["unit"], row["origin"], row["source"])
