"""``rpl optimize``: change kernels only when a measurement proves the gain."""

from __future__ import annotations

from typing import Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand, takes
from rpl_optimize.cli.optimize_options import OptimizeSettings


@click.command("optimize", cls=PluginOptionsCommand)
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@click.option("--proposer", metavar="NAME", default="ranked", help="Who chooses what to try next.")
@takes(OptimizeSettings)
@click.pass_context
def optimize(context: click.Context, /, application: tuple[str, ...], **flags: Any) -> int:
    """Try changes of kernels one by one and accept what is proven: `rpl optimize [SOURCE] "COMMAND"`.

    Each candidate must pass guards on source and binary, compute the same, and be faster in interleaved
    measurements. Nothing of yours is changed before; what is accepted is written beside the source.

    \b
    rpl optimize saxpy.hip "./saxpy 100" --output-file out.bin:f32 --rtol 1e-5
    rpl optimize kernels/sum.hpp --output-file sums.bin:f32 -- python3 driver.py
    rpl optimize ./app --build "make app" --validate "python check.py {program}"
    rpl optimize --resume rpl-runs/20261121T101500Z-optimize-saxpy
    """
    from rpl_optimize.cli.optimize_command import run_optimize

    return run_optimize(context, application, flags, proposer=flags["proposer"], suffix="_opt")
