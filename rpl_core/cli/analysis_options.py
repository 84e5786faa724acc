"""The options that every analysing command shares, and how they become a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.pipeline.analyse import AnalysisRequest

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--device", metavar="NAME", help="Device family or product, e.g. gfx942 or MI300X."),
    click.option("--clock-mhz", metavar="MHZ", type=float, help="Engine clock for the compute ceilings."),
    click.option("--memory-bandwidth-gbps", metavar="GBPS", type=float, help="HBM ceiling of your device."),
    click.option(
        "--flop-model", metavar="MODEL", help="per_op (default) or valu_width, see ROOFLINE_DESIGN."
    ),
    click.option("--occupancy-mode", metavar="MODE", help="hardware (default) or llvm: LDS granule."),
    click.option("--strict", is_flag=True, default=None, help="No estimates where a measurement is missing."),
    click.option("--json", "as_json", is_flag=True, help="Print profile.json on stdout."),
    click.option("--quiet", is_flag=True, help="Print only the runtime in ms."),
)


def analysis_options(command: F) -> F:
    """Add the shared options to ``command``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def analysis_request(session: Session, flags: Mapping[str, Any], root: Path | None) -> AnalysisRequest:
    """The request from flags, environment, file and defaults."""
    from rpl_core.interfaces.analyzer import AnalysisOptions
    from rpl_core.pipeline.analyse import AnalysisRequest

    return AnalysisRequest(
        device=session.setting("device", flags["device"]),
        clock_mhz=session.setting("clock-mhz", flags["clock_mhz"]),
        memory_bandwidth_gbps=session.setting("memory-bandwidth-gbps", flags["memory_bandwidth_gbps"]),
        options=AnalysisOptions(
            flop_model=session.setting("flop-model", flags["flop_model"]),
            strict=session.setting("strict", flags["strict"]),
            occupancy_mode=session.setting("occupancy-mode", flags["occupancy_mode"]),
        ),
        root=root,
    )
