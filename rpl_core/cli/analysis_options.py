"""The options that every analysing command shares, and how they become a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rpl_codeobject.code_sources import CodeSources
    from rpl_core.cli.session import Session
    from rpl_core.pipeline.analyse import AnalysisRequest

F = TypeVar("F", bound=Callable[..., Any])

#: Settings that a run directory remembers and its later analyses take over.
_RECORDED = (
    *("device", "clock-mhz", "memory-bandwidth-gbps"),
    *("flop-model", "strict", "occupancy-mode", "copies"),
)

_OPTIONS = (
    click.option("--device", metavar="NAME", help="Device family or product, e.g. gfx942 or MI300X."),
    click.option("--clock-mhz", metavar="MHZ", type=float, help="Engine clock for the compute ceilings."),
    click.option("--memory-bandwidth-gbps", metavar="GBPS", type=float, help="HBM ceiling of your device."),
    click.option(
        "--flop-model", metavar="MODEL", help="per_op (default) or valu_width, see ROOFLINE_DESIGN."
    ),
    click.option("--occupancy-mode", metavar="MODE", help="hardware (default) or llvm: LDS granule."),
    click.option("--strict", is_flag=True, default=None, help="No estimates where a measurement is missing."),
    click.option(
        "--copies/--no-copies",
        default=None,
        help="Whether copies are work of the critical path (default) or time between kernels.",
    ),
    click.option(
        "--code-object",
        "code_objects",
        multiple=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Executable or code object of the kernels, for packed arithmetic; may be repeated.",
    ),
    click.option(
        "--recorded-code",
        is_flag=True,
        help="Read the code objects beside the recording and those that it names on this machine.",
    ),
    click.option("--full", is_flag=True, help="Write every node and edge of the graph to dag_full.npz too."),
    click.option("--json", "as_json", is_flag=True, help="Print profile.json on stdout."),
    click.option("--quiet", is_flag=True, help="Print only the runtime in ms."),
)


def analysis_options(command: F) -> F:
    """Add the shared options to ``command``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def require_one_result_form(*, as_json: bool, quiet: bool) -> None:
    """``--json`` promises one document and ``--quiet`` one number: both at once can't be had."""
    if as_json and quiet:
        raise click.UsageError(
            "--json and --quiet exclude each other", click.get_current_context(silent=True)
        )


def analysis_request(session: Session, flags: Mapping[str, Any], root: Path | None) -> AnalysisRequest:
    """The request from flags, environment and file; then what the run directory ``root`` was recorded with.

    So ``rpl analyze RUN`` gives the documents that ``rpl profile`` wrote, unless it is told otherwise.
    """
    from rpl_core.interfaces.analyzer import AnalysisOptions
    from rpl_core.pipeline.analyse import AnalysisRequest

    recorded = {} if root is None else _recorded_options(root)

    def chosen(name: str) -> Any:
        key = name.replace("-", "_")
        resolved = session.configuration.resolve(name, flags.get(key))
        return recorded.get(key, resolved.value) if resolved.origin == "default" else resolved.value

    return AnalysisRequest(
        device=chosen("device"),
        clock_mhz=chosen("clock-mhz"),
        memory_bandwidth_gbps=chosen("memory-bandwidth-gbps"),
        options=AnalysisOptions(
            flop_model=chosen("flop-model"),
            strict=chosen("strict"),
            occupancy_mode=chosen("occupancy-mode"),
            include_copies=chosen("copies"),
            full_graph=bool(flags.get("full")),
        ),
        code=_code_sources(flags),
        root=root,
    )


def copies_are_work(session: Session, flag: bool | None, root: Path | None) -> bool:
    """``--copies`` from flag, environment and file; then what the run directory ``root`` remembers."""
    resolved = session.configuration.resolve("copies", flag)
    recorded = {} if root is None or resolved.origin != "default" else _recorded_options(root)
    return bool(recorded.get("copies", resolved.value))


def _code_sources(flags: Mapping[str, Any]) -> CodeSources:
    """Raises ``MissingError`` for a file that is not there, before anything else is done."""
    from rpl_codeobject.code_sources import CodeSources
    from rpl_core.errors import MissingError

    files = tuple(flags.get("code_objects") or ())
    for path in files:
        if not path.is_file():
            raise MissingError(f"no code object at {path}", next_step="check --code-object")
    return CodeSources(files, bool(flags.get("recorded_code")))


def _recorded_options(root: Path) -> Mapping[str, Any]:
    """Options of the recorded run that bear on the analysis. Raises ``BadDataError`` for impossible ones."""
    from rpl_core.config.settings import BY_NAME
    from rpl_core.errors import BadDataError, UsageError
    from rpl_core.run_directory.reader import load_manifest

    options = load_manifest(root).options
    found = {}
    for name in _RECORDED:
        value = options.get(name.replace("-", "_"))
        if value is None:
            continue
        try:
            found[name.replace("-", "_")] = BY_NAME[name].parse(value)
        except UsageError as error:
            raise BadDataError(f"{root} was recorded with an impossible {name}: {error.fact}") from None
    return found
