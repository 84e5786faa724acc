"""``rpl autotune``: find launch and tile parameters with a fraction of the measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rpl_core.cli.session import session_of

_SECONDS = click.FloatRange(min=0, min_open=True)
_FILE = click.Path(path_type=Path)


@click.command("autotune")
@click.option("--space", type=_FILE, metavar="FILE", help="The search space (`rpl schema search-space`).")
@click.option("--cmd-template", metavar="TEXT", help='The command, such as "./app --bm {BLOCK_M}".')
@click.option(
    "--build", metavar="TEXT", help='A build per configuration, such as "hipcc {defines} -o {output}".'
)
@click.option("-D", "--define", "defines", multiple=True, metavar="NAME", help="What {defines} stands for.")
@click.option("--build-all", is_flag=True, help="Build all first: the model learns from their code objects.")
@click.option("--code-object", metavar="FILE", help="Code of a configuration, such as k_{BLOCK_M}.hsaco.")
@click.option("--kernel", metavar="NAME", help="The kernel in it that counts (default: all).")
@click.option("--workgroup-size", metavar="EXPR", help="Work-items, such as BLOCK_M*BLOCK_N/4.")
@click.option("--dynamic-lds", metavar="EXPR", help="LDS bytes that the launch adds.")
@click.option("--validate", metavar="TEXT", help="A command that exits 0 when a configuration is right.")
@click.option("--default", metavar="A=1,B=2", help="The configuration of today, to compare with.")
@click.option(
    "--rocprof/--no-rocprof", default=True, help="Time kernels by the profiler, or the whole process."
)
@click.option("--time-regex", metavar="RE", help="Take the time that the program prints, in its first group.")
@click.option(
    "--time-unit",
    type=click.Choice(["ns", "us", "ms", "s"]),
    default="ms",
    show_default=True,
    help="Unit of --time-regex.",
)
@click.option("--device", metavar="NAME", help="Device family or product, see `rpl devices`.")
@click.option("--collector", metavar="NAME", help="Collector to record with.")
@click.option("--runs", type=click.IntRange(1), metavar="N", help="Runs of each configuration (default 3).")
@click.option("--time-limit", type=_SECONDS, metavar="S", help="Seconds that one run may take (default 600).")
@click.option("--build-time-limit", type=_SECONDS, metavar="S", default=600.0, help="Seconds for one build.")
@click.option(
    "--budget",
    type=click.IntRange(2),
    metavar="N",
    help="Evaluations at most (default 100, or half the space).",
)
@click.option("--time-budget", type=_SECONDS, metavar="S", help="Seconds after which nothing is started.")
@click.option("--exhaustive", is_flag=True, help="Measure the whole space.")
@click.option("--strategy", metavar="NAME", default="regression", show_default=True, help="How to choose.")
@click.option("--seed", type=int, metavar="N", default=0, show_default=True, help="Equal seeds search alike.")
@click.option(
    "--seed-fraction",
    type=click.FloatRange(0, 0.25, min_open=True),
    metavar="F",
    default=0.2,
    show_default=True,
    help="Part of the budget to learn from at most.",
)
@click.option(
    "--prune-factor",
    type=click.FloatRange(1),
    metavar="F",
    default=1.75,
    show_default=True,
    help="Measure predictions up to so many times the best one.",
)
@click.option(
    "--confirm-rounds",
    type=click.IntRange(0),
    metavar="N",
    default=10,
    show_default=True,
    help="Rounds of the final measurement.",
)
@click.option("--executor", metavar="NAME", help="Where to measure (default: local).")
@click.option("--devices", metavar="0,1", help="GPUs of this machine, one worker each.")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler whose workers measure.")
@click.option("--recorded", type=_FILE, metavar="FILE", help="Search a recorded space; nothing is run.")
@click.option(
    "--cache", type=_FILE, metavar="FILE", help="Kept measurements (default: in the runs directory)."
)
@click.option("--no-cache", is_flag=True, help="Measure everything anew.")
@click.option("--export-cache", type=_FILE, metavar="FILE", help="Write a cache file of Kernel Tuner.")
@click.option("--export-t4", type=_FILE, metavar="FILE", help="Write the evaluations as T4.")
@click.option("--show", type=_FILE, metavar="DIR", help="Show a finished search; nothing is run.")
@click.option("-o", "--output", type=_FILE, metavar="DIR", help="Directory of the result.")
@click.option("--json", "as_json", is_flag=True, help="Print autotune.json on stdout.")
@click.pass_context
def autotune(context: click.Context, /, **flags: Any) -> int:
    """Search the parameters of a program for the fastest configuration.

    Placeholders in the templates stand for parameters. What was measured is kept, so the same command goes on
    where an interrupted one stopped.

    \b
    rpl autotune --space space.json \\
      --cmd-template "./kernel --bm {BLOCK_M} --bn {BLOCK_N}"
    rpl autotune --space space.json --cmd-template "{program}" \\
      --build "hipcc k.hip {defines} -o {output}"
    rpl autotune --recorded convolution.json.gz --budget 100
    """
    from rpl_core.process_start import import_numpy_alone

    import_numpy_alone()
    from rpl_autotune.cli.autotune_call import AutotuneSettings, run_autotune

    return run_autotune(session_of(context), AutotuneSettings(**flags))
