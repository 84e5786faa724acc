"""``rpl emu``: kernels and programs for gfx942 on the CPU, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.session import session_of
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.cli.output import Output
    from rpl_emu.software_gpu import Answer

_FILE = click.Path(path_type=Path)
_STRICT = click.option(
    "--strict-decode",
    is_flag=True,
    help="Refuse a kernel with an instruction that is not offered before it runs, not when it is reached.",
)


@click.group("emu")
def emu() -> None:
    """Run kernels of gfx942 code objects on the CPU: results and exact instruction counts, no times.

    \b
    rpl emu run -- ./app
    rpl emu launch kernel.hsaco --grid 256 --block 64 --arg zeros:1024,out=r.bin
    """


@emu.command("launch")
@click.argument("code_object", type=_FILE)
@click.option("--kernel", metavar="NAME", help="Which kernel; not needed if there is only one.")
@click.option("--grid", default="1", metavar="X[,Y[,Z]]", help="Work-items in all.")
@click.option("--block", default="64", metavar="X[,Y[,Z]]", help="Work-items of a workgroup.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="TYPE:VALUE",
    help="One for each argument: i32:5, f32:1.5, zeros:BYTES, file:PATH; buffers take ,out=PATH.",
)
@click.option("--lds", type=click.IntRange(0), default=0, help="Bytes of LDS beside the kernel's own.")
@click.option(
    "--stack", type=click.IntRange(0), default=0, help="More scratch bytes per lane, for recursion."
)
@click.option(
    "--threads", type=click.IntRange(1), default=1, help="CPU threads; 1 gives the same order each time."
)
@click.option("--time-limit", type=click.FloatRange(0, min_open=True), default=60.0, help="Seconds.")
@click.option("--max-instructions", type=click.IntRange(0), default=0, help="Of all waves; 0: no limit.")
@click.option(
    "--memory-limit", type=click.IntRange(0), default=0, help="Bytes of address space; 0: no limit."
)
@click.option("--seed", type=click.IntRange(0), default=1, help="Of what unwritten registers and LDS hold.")
@click.option(
    "--sanitize", is_flag=True, help="Report races, unwritten LDS and registers, barriers that do not fit."
)
@click.option(
    "--model-caches", is_flag=True, help="Model the traffic between caches and memory (one thread)."
)
@_STRICT
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def launch(context: click.Context, /, code_object: Path, as_json: bool, **flags: Any) -> int:
    """Run a kernel of CODE_OBJECT. An instruction that is not offered is refused when it is reached.

    \b
    rpl emu launch k.hsaco --kernel vadd --grid 1024 --block 256 \\
      --arg file:a.bin --arg file:b.bin --arg zeros:4096,out=c.bin --arg i32:1024

    Exit code 0: the kernel ended; 1: --sanitize found something; 4: access outside of memory; 69: an
    instruction that is not offered, or no LLVM; 124: a limit was reached.
    """
    from rpl_core.cli.output import shown_while_running
    from rpl_emu.rocpd_file import amd_counters
    from rpl_emu.software_gpu import call

    output = session_of(context).output
    given = _LaunchOptions(**flags)
    with shown_while_running("emulator", lambda: "running", quiet=as_json):
        answer = call(given.words(code_object), seconds=given.time_limit)
    if as_json:
        document = dict(answer.document or {"outcome": "limit"})
        if "classes" in document:
            document["amd_counters"] = amd_counters(document)
        output.json({"schema_version": "1.0", **document, "messages": list(answer.messages)})
    else:
        _print_launch(output, answer)
    return answer.status


@frozen
class _LaunchOptions:
    """What the options of one call say, by the names that click gives them."""

    kernel: str | None
    grid: str
    block: str
    arguments: tuple[str, ...]
    lds: int
    stack: int
    threads: int
    time_limit: float
    max_instructions: int
    memory_limit: int
    seed: int
    sanitize: bool
    model_caches: bool
    strict_decode: bool

    def words(self, code_object: Path) -> list[str]:
        """For the native program."""
        words = ["launch", str(code_object), "--json", "--grid", self.grid, "--block", self.block]
        words += ["--lds", str(self.lds), "--stack", str(self.stack), "--threads", str(self.threads)]
        words += ["--max-instructions", str(self.max_instructions), "--seed", str(self.seed)]
        words += ["--timeout", str(self.time_limit)]
        if self.memory_limit:
            words += ["--memory-limit", str(self.memory_limit)]
        if self.kernel:
            words += ["--kernel", self.kernel]
        for argument in self.arguments:
            words += ["--arg", argument]
        words += ["--sanitize"] if self.sanitize else []
        words += ["--strict-decode"] if self.strict_decode else []
        return words + (["--model-caches"] if self.model_caches else [])


def _print_launch(output: Output, answer: Answer) -> None:
    for message in answer.messages:
        output.note(message)
    document = answer.document
    if document is None:
        return
    output.line(
        f"{document['kernel']}: {document['outcome']}, {document['waves']} waves, "
        f"{document['instructions']} instructions (emulated, not measured)"
    )
    for class_, counts in document["classes"].items():
        lanes = counts["lanes"] / counts["executed"]
        output.line(f"  {class_:16} {counts['executed']:>14}   {lanes:5.1f} lanes on")
    if modelled := document.get("modelled"):
        output.line(
            f"  {modelled['device']}: at least {modelled['bound_ns']:.0f} ns, by {modelled['bound_by']}"
            " (modelled, no prediction)"
        )
    for opcode in document["not_to_the_bit"]:
        output.note(f"{opcode['opcode']}: {opcode['why']}")


@emu.command("run", context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--runtime", type=_FILE, help="Root with ROCm's runtime, as rpl emu get-runtime prints; else found."
)
@click.option("--gpus", type=click.IntRange(1, 2), default=1, help="How many GPUs the program finds.")
@click.option("--sanitize", is_flag=True, help="End with 1 after a launch with a race or an unwritten read.")
@_STRICT
@click.option(
    "--time-limit", type=click.FloatRange(0, min_open=True), help="Seconds, after which it ends with 124."
)
@click.pass_context
def run(
    context: click.Context,
    command: tuple[str, ...],
    runtime: Path | None,
    gpus: int,
    time_limit: float | None,
    *,
    sanitize: bool,
    strict_decode: bool,
) -> None:
    """Run a HIP or HSA program with no GPU: its real runtime, and its real kernels in the emulator.

    \b
    rpl emu run -- ./app arguments

    Output and exit code are the program's. A kernel with an instruction that is not offered ends it with
    69. Nothing is measured: times that the program takes are those of this machine's CPU. With --sanitize
    a launch with a race, or that reads registers or LDS that nobody wrote, ends the program with 1.

    At a terminal a line tells how far it is. With --time-limit a
    program that takes longer ends with 124 and says in which kernel, at which instruction.
    """
    import os
    import sys
    import time

    from rpl_core.process import require_program
    from rpl_emu.software_gpu import environment, find_runtime, launcher_words

    require_program(command)
    started_with = find_runtime(command, runtime)
    words = [*launcher_words(started_with, sanitize=sanitize, strict_decode=strict_decode), *command]
    settings = {"SOFTKFD_GPUS": str(gpus)}
    if time_limit is not None:
        settings["SOFTKFD_DEADLINE_NS"] = str(time.monotonic_ns() + int(time_limit * 1e9))
    if not session_of(context).output.silent:
        settings["SOFTKFD_PROGRESS"] = "1"
    # The program takes rpl's place: signals, terminal, exit code and standard output are its own.
    if sys.stdout is not None:
        os.dup2(sys.stdout.fileno(), 1)
    os.execve(words[0], words, {**environment(), **settings})  # noqa: S606


@emu.command("get-runtime")
@click.option(
    "--suite",
    metavar="NAME",
    help="forky (HIP 6.4), trixie (5.7) or experimental (7.2); default: forky, else trixie.",
)
@click.option("--mirror", metavar="URL", help="Ask this mirror of Debian alone.")
@click.option("--latest", is_flag=True, help="What the suite holds today, by apt and its keys.")
@click.option("--index", metavar="URL", help="ROCr and HIP of AMD's packages: https://HOST/PATH/dists/SUITE.")
@click.pass_context
def get_runtime(
    context: click.Context, suite: str | None, mirror: str | None, index: str | None, *, latest: bool
) -> int:
    """Fetch ROCm's runtime for `rpl emu run`: Debian's packages, into your cache, without root. Print where.

    \b
    rpl emu get-runtime
    rpl emu run -- ./app

    Nothing of the system changes: ROCr, HIP with headers and device bitcode, and the C library that they
    need, lie in a folder of their own. Each file's SHA-256 is in a list of this rpl. `rpl emu run` and
    `rpl profile --device gfx942-emu` find it by themselves. Exit code 69: it can't be had.

    With --index ROCr and HIP are AMD's own, out of an index of packages whose address you give; the index has
    their SHA-256, and the rest is Debian's.
    """
    from rpl_core.cli.output import shown_while_running
    from rpl_core.errors import UsageError
    from rpl_emu.runtime_index import of_index
    from rpl_emu.runtime_packages import SUITES, Told
    from rpl_emu.runtime_packages import get_runtime as get

    output = session_of(context).output
    if suite is not None and suite not in SUITES:
        raise UsageError(f"there is no suite {suite!r} to take it from", next_step=" or ".join(SUITES))
    if latest and mirror:
        raise UsageError("--latest and --mirror exclude each other: apt of this machine has its own mirror")
    if index is not None and (latest or suite is not None):
        raise UsageError("--index says what is taken: --suite and --latest are of Debian's packages")
    steps = [""]
    with shown_while_running("fetching", lambda: steps[-1], quiet=output.silent):
        told = Told(output.note, steps.append)
        folder = (
            get(suite, mirror, latest=latest, told=told) if index is None else of_index(index, mirror, told)
        )
    output.line(str(folder))
    return 0


@emu.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> int:
    """Say whether kernels can run here: the program, LLVM, the CPU's instruction set. Exit code 69: not."""
    from rpl_emu.software_gpu import call

    output = session_of(context).output
    document = call(["doctor"], seconds=30).document
    if as_json:
        output.json({"schema_version": "1.0", **document})
    else:
        output.line(
            f"{document['opcodes']} opcodes of gfx942 on {document['cpu']}, "
            f"decoded by {document['disassembler']} ({document['library']})"
        )
    return 0


@emu.command("opcodes")
@click.option("--refused", is_flag=True, help="Only those that are not offered.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def opcodes(context: click.Context, *, refused: bool, as_json: bool) -> int:
    """List the opcodes of gfx942 that LLVM knows: whether they are offered, and why not.

    A name counts once, whatever encodings it has. Of an offered opcode single modifiers may be refused.
    """
    from rpl_emu.software_gpu import call

    output = session_of(context).output
    document = call(["opcodes", "--known"], seconds=60).document
    rows = [row for row in document["opcodes"] if not (refused and row["offered"])]
    if as_json:
        output.json({"schema_version": "1.0", **document, "opcodes": rows})
        return 0
    for row in rows:
        said = row["why"] if not row["offered"] else row["note"] or ""
        mark = "offered" if row["offered"] else "refused"
        output.line(f"{row['opcode']:32} {','.join(row['encodings']):16} {mark}  {said}".rstrip())
    offered = sum(row["offered"] for row in document["opcodes"])
    output.line(f"{offered} of {len(document['opcodes'])} opcodes are offered ({document['disassembler']})")
    return 0


@emu.command("calibrate")
@click.argument("launched", type=_FILE)
@click.argument("recorded", type=_FILE)
@click.option("--kernel", metavar="NAME", help="The recorded kernel, or a part of its name.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def calibrate(
    context: click.Context, launched: Path, recorded: Path, kernel: str | None, as_json: bool
) -> int:
    """Compare emulated counters with those of an MI300X.

    LAUNCHED is by rpl emu launch --json, RECORDED a CSV of rocprofv3. Or LAUNCHED is the directory of a run
    on the emulated device and RECORDED a folder of such files: each kernel of the program is compared.

    \b
    rocprofv3 --pmc SQ_WAVES SQ_INSTS_VALU SQ_INSTS_SALU --output-format csv -- ./program
    rpl emu launch k.hsaco --kernel K ... --json > launched.json
    rpl emu calibrate launched.json ..._counter_collection.csv --kernel K

    Exit code 1: a counter differs.
    """
    import attrs

    from rpl_emu.calibration import compare, compare_programs, read_launch, read_recorded

    output = session_of(context).output
    if launched.is_dir():
        compared = compare_programs(launched, recorded)
        counters = tuple(counter for counter in compared if kernel is None or kernel in counter.kernel)
    else:
        document = read_launch(launched)
        counters = compare(document, read_recorded(recorded, kernel or document["kernel"]))
    if as_json:
        rows = [{**attrs.asdict(counter), "agrees": counter.agrees} for counter in counters]
        output.json({"schema_version": "1.0", "counters": rows})
    else:
        for counter in counters:
            verdict = "agrees" if counter.agrees else "differs"
            line = f"{counter.counter:28} {counter.emulated:>14} {counter.recorded:>14.0f}  {verdict}"
            output.line(f"{line}  {counter.kernel}".rstrip())
    return 0 if all(counter.agrees for counter in counters) else 1
