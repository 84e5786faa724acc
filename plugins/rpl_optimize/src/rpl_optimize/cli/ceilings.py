"""``rpl ceilings``: the ceilings that an analysis uses, with their origins, and how to measure your own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import Session, session_of
from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.files import config_folder
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.device import ComputeCeiling, DeviceModel, MemoryCeiling
    from rpl_core.model.recording import Recording
    from rpl_optimize.ceilings import Benchmark, KeptDevice, Rate, Sizes


_PER_COMPUTE_UNIT = 8  # workgroups of four waves: as many as fit on a compute unit of most GPUs


@frozen
class _HowToRecord:
    """What the options of one call say about building and recording; ``None``: not said."""

    build_command: str | None
    collector: str | None
    debug: bool


@click.command("measure", short_help="Measure those of your own device, and keep them.")
@click.option("--device", "name", metavar="NAME", help="The device to measure, see `rpl devices`.")
@click.option("--build", "build_command", metavar="COMMAND", help="Your compiler: {source}, {output}.")
@click.option("--collector", metavar="NAME", help="Who times the kernels.")
@click.option(
    "--launches",
    type=click.IntRange(min=2),
    default=20,
    show_default=True,
    help="Of each kernel; the best counts.",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    help="Of each kernel of arithmetic, L2 and LDS.",
)
@click.option(
    "--mebibytes",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    help="Of each of the two buffers.",
)
@click.option("--workgroups", type=click.IntRange(min=1), help="Default: 8 per compute unit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--debug", is_flag=True, help="Show the profiler's log.")
@click.pass_context
def measure_ceilings(
    context: click.Context,
    /,
    name: str | None,
    launches: int,
    iterations: int,
    mebibytes: int,
    workgroups: int | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Measure the bandwidth and arithmetic rates of a device, and keep them as its measured ceilings.

    Small kernels (copy, read, write, L2, LDS, FMA and MFMA of each data type) are built and run under the
    profiler; rates are known work over kernel time. They are kept in ~/.config/rpl/ceilings.json; `rpl
    ceilings` lists them, and the roofline draws them as its second roof. What an emulated device gives is a
    model's figure and never becomes a ceiling.

    \b
    rpl ceilings measure --device NAME
    rpl ceilings --device NAME
    """
    from rpl_optimize.ceilings import Sizes, benchmarks_for, keep, rates_of
    from rpl_optimize.plugin import KEPT_CEILINGS

    session, settings = session_of(context), config_folder()
    if settings is None:
        raise UsageError(
            "there is no home folder to keep the rates in", next_step="set HOME or XDG_CONFIG_HOME"
        )
    path = settings / KEPT_CEILINGS
    device = _installed_device(session, session.setting("device", name))
    units = _PER_COMPUTE_UNIT * (device.compute_units or 1)
    sizes = Sizes(workgroups or units, iterations, mebibytes, launches)
    wanted = benchmarks_for(device)
    recording, collector = _recorded(session, device, wanted, sizes, _HowToRecord(**flags))
    device = _recorded_model(session, device, recording)
    rates = rates_of(recording, wanted, sizes, device)
    absent = sorted({benchmark.kernel for benchmark in wanted} - {rate.kernel for rate in rates})
    if absent:
        session.output.note(f"not measured, no such instruction on this GPU: {', '.join(absent)}")
    measured = _measured(device, recording, collector, sizes, rates)
    is_kept = keep(device.name, measured, path)
    if as_json:
        session.output.json(
            {"schema_version": "1.0", "device": device.name, **measured.model_dump(mode="json")}
        )
    else:
        _show(session, measured)
    if not is_kept:
        session.output.note(f"not kept: {path} holds what was measured on {device.name}")
    elif measured.origin != "measured":
        session.output.note(f"kept in {path} as {measured.origin}: no ceiling, since nothing was measured")
    else:
        session.output.note(f"kept in {path}; `rpl ceilings --device {device.name}` lists them")


def _installed_device(session: Session, name: str | None) -> DeviceModel:
    from rpl_core.pipeline import AnalysisRequest, recorded_device

    if name is None:
        raise UsageError(
            "no device is named, so its ceilings can't be compared with its peaks",
            next_step="rpl ceilings measure --device NAME (`rpl devices` lists them)",
        )
    model = recorded_device(AnalysisRequest(device=name), (), session.host).model
    if model is None:
        raise MissingError(f"no installed plugin knows {name}", next_step="`rpl devices` lists the devices")
    return model


def _recorded(
    session: Session,
    device: DeviceModel,
    wanted: tuple[Benchmark, ...],
    sizes: Sizes,
    given: _HowToRecord,
) -> tuple[Recording, str]:
    """Build and run the program in a folder of its own; and who timed it."""
    from rpl_core.cli.profile import log_sink
    from rpl_core.ingest import load_recording
    from rpl_core.interfaces.options import Options
    from rpl_core.pipeline import AnalysisRequest
    from rpl_core.profiling import ProfileRequest, choose_collector, record_application

    collector = choose_collector(
        session.host, session.setting("collector", given.collector), Options(), device.name
    )
    words = (*sizes.words(), *(benchmark.kernel for benchmark in wanted))
    with (
        tempfile.TemporaryDirectory(prefix="rpl-ceilings-") as folder,
        session.output.progress("ceilings measure", total=None) as show,
    ):
        place = Path(folder).resolve()
        show("build")
        command = _built(session, place, device, words, given.build_command)
        request = ProfileRequest(
            command=command,
            runs=1,
            roofline=False,
            trace_dependencies=False,
            time_limit_s=session.setting("time-limit", None),
            allow_dangerous_counters=False,
            output=place / "recording",
            runs_directory=place,
            analysis=AnalysisRequest(device=device.name),
        )
        recorded = record_application(request, collector, session.host, log_sink(session, given.debug), show)
        if recorded.failure is not None:
            raise recorded.failure
        recording = load_recording((request.output or place,), session.host.catalog.readers().contributions)
    return recording, collector.name


def _recorded_model(session: Session, device: DeviceModel, recording: Recording) -> DeviceModel:
    """The product or partition that ran; raises where it is of another architecture than the named one."""
    from rpl_core.pipeline import AnalysisRequest, recorded_device

    recorded = recorded_device(AnalysisRequest(device=device.name), recording.gpu_agents, session.host)
    return recorded.model or device


def _built(
    session: Session, place: Path, device: DeviceModel, words: tuple[str, ...], build_command: str | None
) -> tuple[str, ...]:
    """The command that runs the program, built by the build system that a user's own source would get."""
    from importlib.resources import files

    from rpl_optimize.build.builders import choose_builder
    from rpl_optimize.hookspecs import BUILDERS
    from rpl_optimize.interfaces.builder import BuildFailure, BuildRequest

    text = files("rpl_optimize").joinpath("ceilings.hip").read_bytes()
    source, directory = place / "ceilings.hip", place / "build"
    source.write_bytes(text)
    directory.mkdir()
    request = BuildRequest(
        command=(str(place / "ceilings"), *words),
        source=source,
        place=place,
        build_command=build_command,
        architecture=compiled_for(session, device),
    )
    builder = choose_builder(request, session.host.catalog.of(BUILDERS).contributions, session.output.note)
    build = builder.build(text, directory)
    if isinstance(build, BuildFailure):
        raise BadDataError(
            f"the kernels can't be built: {build.reason}",
            next_step="give your own compiler with --build 'hipcc -O3 {source} -o {output}'",
        )
    return builder.command_for(build)


def compiled_for(session: Session, device: DeviceModel) -> str:
    """Its own architecture; of a device that measures nothing the one whose code it runs."""
    from rpl_optimize.hookspecs import METRICS

    metrics = (contribution.value for contribution in session.host.catalog.of(METRICS).contributions)
    of_models = (metric.architecture for metric in metrics if device.name in metric.devices)
    return next(of_models, device.architecture)


def _measured(
    device: DeviceModel, recording: Recording, collector: str, sizes: Sizes, rates: tuple[Rate, ...]
) -> KeptDevice:
    from datetime import datetime, timezone

    import attrs

    from rpl_core import __version__
    from rpl_optimize.ceilings import KeptDevice

    return KeptDevice(
        product=device.product,
        architecture=device.architecture,
        compute_units=device.compute_units,
        origin=recording.origin.value,
        date=datetime.now(timezone.utc).date().isoformat(),
        rpl_version=__version__,
        collector=collector,
        sizes=attrs.asdict(sizes),
        rates=rates,
    )


def _show(session: Session, measured: KeptDevice) -> None:
    session.output.line(f"{measured.product} ({measured.architecture}), {measured.origin}, {measured.date}")
    rows = [
        (
            rate.what,
            rate.pipe or "-",
            f"{rate.best:,.6g}",
            f"{rate.slowest:,.6g}",
            "GB/s" if rate.pipe is None else "GOP/s",
            rate.refused or "",
        )
        for rate in measured.rates
    ]
    columns = ("KERNEL", "PIPE", "BEST", "SLOWEST", "UNIT", "REFUSED")
    session.output.table(columns, rows, right=("BEST", "SLOWEST"))


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
    # By origin; then memory from the farthest level on and arithmetic, each in the order of the device.
    memory = (_row(c.level, None, c.peak_gbps, "GB/s", c) for c in device.memory_ceilings)
    compute = (_row(c.data_type, c.pipe.value, c.peak_gflops, "GOP/s", c) for c in device.compute_ceilings)
    rows = sorted((*memory, *compute), key=lambda row: _ORDER.index(row["origin"]))
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
    from rpl_core.ingest import load_recording
    from rpl_core.model.recording import Recording
    from rpl_core.pipeline import AnalysisRequest, find_device

    readers = session.host.catalog.readers().contributions if recordings else ()
    recording = load_recording(recordings, readers) if recordings else Recording(traces=())
    device = find_device(AnalysisRequest(device=name), recording.gpu_agents, session.host, recording.ceilings)
    return device.model, device.diagnostics[0].fact if device.diagnostics else "the device is unknown"


def _row(
    name: str, pipe: str | None, rate: float, unit: str, ceiling: ComputeCeiling | MemoryCeiling
) -> dict[str, Any]:
    origin = {"origin": ceiling.origin.value, "source": ceiling.source}
    return {"ceiling": name, "pipe": pipe, "rate": rate, "unit": unit, **origin}


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    rate = f"{row['rate']:,.10g}"
    return (row["ceiling"], row["pipe"] or "-", rate, row["unit"], row["origin"], row["source"])
