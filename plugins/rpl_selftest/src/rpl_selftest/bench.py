"""What the checks share: the folder of the self-test, rpl's own commands with their limits, and recordings.

Every command is rpl itself or the program of known work, in a session that is ended with it. What several
checks need is made once; where it can't be made, each of them says the same reason.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.files import parse_json, read_regular
from rpl_core.process import ProcessRequest, run_command
from rpl_core.text import readable
from rpl_core.values import frozen
from rpl_selftest.check import NotPossibleError

if TYPE_CHECKING:
    from rpl_core.model.recording import Recording
    from rpl_core.plugins.host import PluginHost

    Made = TypeVar("Made")

_START = "import sys; from rpl_core.cli import main; sys.exit(main())"
#: Documents of rpl about one small program, and what that program prints (chosen).
_MOST_BYTES = 32 << 20
_MOST_SHOWN = 300
#: After its limit a command is given this long to end by itself, so that it says what was too slow.
_GRACE_S = 10.0
#: A code object alone: the emulator takes no bundle, which `--genco` makes.
_DEVICE_CODE = ("--offload-device-only", "--no-gpu-bundle-output")
PROGRAM, CAPTURE = "known_work", "capture"
#: Of examples/testbed, those that are counted with ``--quick``.
_QUICK_TESTBED = ("gemm", "reduction")


#: Kernel to counter to exact count of one launch.
Counts = Mapping[str, Mapping[str, int]]


@frozen
class Sizes:
    """Arguments of the program of known work (``programs/known_work.hip``)."""

    mebibytes: int
    iterations: int
    repeats: int

    @property
    def bytes(self) -> int:
        return self.mebibytes << 20


#: On a GPU: fma_long takes some 8 ms, so that the microseconds around an event are no part of it; the copy is
#: far larger than all L2 caches, whose last dirty lines no kernel writes back.
ON_A_GPU = Sizes(mebibytes=256, iterations=1 << 21, repeats=5)
#: In an emulator a count is as exact for small sizes.
EMULATED = Sizes(mebibytes=2, iterations=4096, repeats=2)
#: For captures, whose size is that of the work.
SMALL = Sizes(mebibytes=1, iterations=256, repeats=1)
#: For thread traces, whose size grows with the work: a 32nd of that on a GPU.
TRACED = Sizes(mebibytes=1, iterations=1 << 16, repeats=5)


@frozen
class Answer:
    status: int
    stdout: bytes
    wall_s: float
    said: str = ""

    def json(self) -> Any:
        return parse_json(self.stdout, "what rpl printed")


@frozen(eq=False)
class Recorded:
    """One ``rpl profile`` of a program, and the times that the program of known work itself took."""

    recording: Recording
    profile: Mapping[str, Any]
    event_ns: Mapping[str, tuple[float, ...]]
    wall_s: float


@attrs.define(eq=False)
class Bench:
    """``device`` is the user's word for it; ``emulated`` one that has a collector of its own and no GPU.

    ``programs`` holds built programs instead of those that would be built. ``deadline`` is monotonic.
    """

    folder: Path
    host: PluginHost
    device: str | None = None
    emulated: bool = False
    programs: Path | None = None
    full: bool = False
    command_limit_s: float = 60.0
    deadline: float = float("inf")
    scrubbed: Callable[[str], str] = str  # takes out what identifies this machine
    before: Mapping[str, str] = attrs.field(factory=dict)  # settings of clocks, as they were
    _made: dict[str, Any] = attrs.field(factory=dict)

    @property
    def sizes(self) -> Sizes:
        return EMULATED if self.emulated else ON_A_GPU

    @property
    def temporary(self) -> Path:
        """Where everything that is started makes its temporary files."""
        return self.folder / "tmp"

    @contextmanager
    def own_temporary(self) -> Iterator[None]:
        """Within it, what this process starts by itself has the same folder for temporary files."""
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = str(self.temporary)
        try:
            yield
        finally:
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before

    def shown(self, text: str, most: int) -> str:
        """The begin of ``text``. It is scrubbed first: of a name that is cut in two the rest would stay."""
        return readable(self.scrubbed(text), most)

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """What ``make`` gave the first time, or the reason why it could not."""
        if name not in self._made:
            try:
                self._made[name] = make()
            except NotPossibleError as error:
                self._made[name] = error
        made = self._made[name]
        if isinstance(made, NotPossibleError):
            raise NotPossibleError(*made.args)
        return made  # type: ignore[no-any-return]

    def made(self, name: str) -> Any:
        """The same if it was made before; ``None`` otherwise."""
        made = self._made.get(name)
        return None if isinstance(made, NotPossibleError) else made

    def rpl(
        self, *words: object, statuses: tuple[int, ...] = (0,), environment: Mapping[str, str] = {}
    ) -> Answer:
        """An rpl command. Raises ``NotPossibleError`` where it ends with another status, or not in time."""
        return self._run(
            (sys.executable, "-c", _START, *map(str, words)), f"rpl {words[0]}", statuses, environment
        )

    def run(self, program: Path, *words: object) -> Answer:
        return self._run((str(program), *map(str, words)), program.name, (0,), {})

    def _run(
        self, command: tuple[str, ...], what: str, statuses: tuple[int, ...], environment: Mapping[str, str]
    ) -> Answer:
        limit = min(self.command_limit_s + _GRACE_S, self.deadline - time.monotonic())
        if limit <= 0:
            raise NotPossibleError("the time of the self-test was over before its turn")
        number = self._made["commands"] = self._made.get("commands", 0) + 1
        out = self.folder / f"{number}.out"
        said: list[str] = []
        request = ProcessRequest(
            command=command,
            environment={**os.environ, "TMPDIR": str(self.temporary), **environment},
            log_path=self.folder / f"{number}.log",
            time_limit_s=limit,
            what=what,
            working_directory=self.folder,
            stdout_path=out,
        )
        try:
            ended = run_command(request, said.append)
            stdout = read_regular(out, _MOST_BYTES) if out.exists() else b""
        except InterruptedRunError:
            raise
        except RplError as error:
            raise NotPossibleError(error.one_line()) from error
        last = next(
            (self.shown(line, _MOST_SHOWN) for line in reversed(said) if line.strip()), "it said nothing"
        )
        if ended.exit_status not in statuses:
            how = f"signal {ended.signal}" if ended.exit_status is None else f"exit code {ended.exit_status}"
            raise NotPossibleError(f"{what} ended with {how}: {last}")
        assert ended.exit_status is not None
        return Answer(ended.exit_status, stdout, ended.wall_s, last)

    def build(self, name: str = PROGRAM) -> tuple[Path, Path]:
        """The program ``name`` and its code object."""
        return self.once(f"build {name}", lambda: self._build(name))

    def _build(self, name: str) -> tuple[Path, Path]:
        from importlib.resources import as_file, files
        from shutil import which

        if self.programs is not None:
            found = self.programs / name, self.programs / f"{name}.hsaco"
            absent = [path.name for path in found if not path.is_file()]
            if absent:
                raise NotPossibleError(f"the folder of programs holds no {' and no '.join(absent)}")
            return found
        compiler = which("hipcc")
        if compiler is None:
            what = "the program of known work" if name == PROGRAM else name
            raise NotPossibleError(f"there is no hipcc on PATH to build {what}")
        program, code = self.folder / name, self.folder / f"{name}.hsaco"
        architecture = "gfx942" if self.emulated else "native"
        words = (f"--offload-arch={architecture}", "-O3")
        with as_file(files("rpl_selftest").joinpath("programs")) as folder:
            source = folder / f"{name}.hip" if name == PROGRAM else folder / "testbed" / f"{name}.hip"
            self.run(Path(compiler), *words, source, "-o", program)
            self.run(Path(compiler), *_DEVICE_CODE, *words, source, "-o", code)
        return program, code

    def command(self, sizes: Sizes, times: Path) -> tuple[str, ...]:
        program, _ = self.build()
        return (str(program), str(sizes.mebibytes), str(sizes.iterations), str(sizes.repeats), str(times))

    def record(self, name: str, sizes: Sizes, *options: str) -> Recorded:
        """The program under ``rpl profile`` with ``options``: one run, and its own times from that run."""

        def made() -> Recorded:
            times = self.folder / f"{name}.times"
            recorded = self._record(name, self.command(sizes, times), options)
            return attrs.evolve(recorded, event_ns=read_times(times))

        return self.once(f"recording {name}", made)

    def _record(self, name: str, command: tuple[str, ...], options: tuple[str, ...]) -> Recorded:
        from rpl_core.ingest import load_recording

        directory = self.folder / name
        words = (
            "profile",
            "--runs",
            "1",
            "--no-api",
            "--json",
            "-o",
            directory,
            *options,
            *self.device_words,
        )
        limit = ("--time-limit", f"{self.command_limit_s:g}")
        answer = self.rpl(*words, *limit, "--", *command)
        try:
            readers = self.host.catalog.readers().contributions
            return Recorded(load_recording((directory,), readers), answer.json(), {}, answer.wall_s)
        except RplError as error:
            raise NotPossibleError(error.one_line()) from error

    @property
    def device_words(self) -> tuple[str, ...]:
        return () if self.device is None else ("--device", self.device)

    def timing(self) -> Recorded:
        return self.record("timing", self.sizes)

    def counted(self) -> Recorded:
        return self.record("counters", self.sizes, *_counting(self.emulated_names()))

    def emulated_names(self) -> tuple[str, ...]:
        """The counters of which the emulator has exact counts; a few that arithmetic gives, without it."""
        try:
            return _names(self.emulator_counts())
        except NotPossibleError:
            return ("SQ_WAVES", "SQ_INSTS_VALU_FMA_F64")

    def emulator_counts(self) -> Counts:
        """Kernel to counter to exact count of one launch, by the emulator on the same code object."""

        return self.once("emulator", lambda: self._emulated(PROGRAM, kernels(self.sizes)))

    def testbed_programs(self) -> Mapping[str, tuple[KnownKernel, ...]]:
        """Those to count: of a folder of built programs the ones in it, else all (two with ``--quick``)."""

        known = kernels_of_testbed()
        if self.programs is not None:
            known = {name: one for name, one in known.items() if (self.programs / name).is_file()}
            if not known:
                raise NotPossibleError("the folder of programs holds none of the testbed")
        return known if self.full else {name: one for name, one in known.items() if name in _QUICK_TESTBED}

    def testbed(self, name: str) -> tuple[Recorded, Counts]:
        """A program of the testbed under ``rpl profile`` with counters, and the emulator's counts of it."""

        def made() -> tuple[Recorded, Counts]:
            program, _ = self.build(name)
            counts = self._emulated(name, self.testbed_programs()[name])
            return self._record(f"testbed-{name}", (str(program),), _counting(_names(counts))), counts

        return self.once(f"testbed {name}", made)

    def _emulated(self, program: str, kernels: tuple[KnownKernel, ...]) -> Counts:
        from rpl_codeobject.reading import read_code_objects

        _, code = self.build(program)
        try:
            symbols = [one.name for part in read_code_objects(code) for one in part.kernels]
        except RplError as error:
            raise NotPossibleError(error.one_line()) from error
        found = {}
        for kernel in kernels:
            sizes = (",".join(map(str, one)) for one in (kernel.grid, kernel.workgroup))
            shape = [word for pair in zip(("--grid", "--block"), sizes, strict=True) for word in pair]
            arguments = [word for argument in kernel.arguments for word in ("--arg", argument)]
            limit = ("--time-limit", f"{self.command_limit_s:g}")
            symbol = next(filter(kernel.is_symbol, symbols), kernel.name)
            words = ("emu", "launch", code, "--kernel", symbol, *shape, *arguments, *limit, "--json")
            counters = self.rpl(*words).json()["amd_counters"]
            found[kernel.name] = {name: int(one["value"]) for name, one in counters.items()}
        return found


def _names(counts: Counts) -> tuple[str, ...]:
    return tuple(sorted({name for counters in counts.values() for name in counters}))


def _counting(names: tuple[str, ...]) -> tuple[str, ...]:
    return ("--roofline", "--counters", ",".join(names))


def read_times(path: Path) -> Mapping[str, tuple[float, ...]]:
    """What the program of known work wrote: a kernel and a time in ns on each line."""
    found: dict[str, list[float]] = {}
    for line in read_regular(path, _MOST_BYTES).decode("utf-8", "replace").splitlines():
        name, _, time_ns = line.partition(" ")
        try:
            found.setdefault(name, []).append(float(time_ns))
        except ValueError:
            raise NotPossibleError(f"the program's file of times holds {readable(line, 60)!r}") from None
    return {name: tuple(times) for name, times in found.items()}


# What the kernels of the self-test do in one launch, by arithmetic: no compiler, no GPU.


_WAVE = 64
_COPIED_BYTES, _COPY_BLOCK = 16, 256
_CHAINS, _CHAIN_BLOCK = 256, 64
_LEAVES, _TREE_BLOCK = 256 * 64, 256


@frozen
class KnownKernel:
    """``grid`` is work-items in all, ``fmas_per_lane`` are of double precision; ``arguments`` as
    ``rpl emu launch --arg`` takes them."""

    name: str
    grid: tuple[int, ...]
    workgroup: tuple[int, ...]
    arguments: tuple[str, ...]
    fmas_per_lane: int = 0
    bytes_moved: int | None = None  # read and written beyond the caches, where arithmetic tells it

    @property
    def waves(self) -> int:
        return math.prod(self.grid) // _WAVE  # workgroups are whole waves

    def is_symbol(self, symbol: str) -> bool:
        """Whether ``symbol`` is this kernel's in a code object, C++ or C (Itanium C++ ABI, 5.1.2)."""
        return symbol == self.name or symbol.startswith(f"_Z{len(self.name)}{self.name}")

    @property
    def fma_instructions(self) -> int:
        return self.waves * self.fmas_per_lane


def kernels(sizes: Sizes) -> tuple[KnownKernel, ...]:
    chain = (f"zeros:{_CHAINS * 8}", "f64:0.5", "f64:1")

    def chained(name: str, steps: int) -> KnownKernel:
        return KnownKernel(name, (_CHAINS,), (_CHAIN_BLOCK,), (*chain, f"i32:{steps}"), steps)

    buffer, numbers = f"zeros:{sizes.bytes}", f"zeros:{_LEAVES * 4}"
    copied = (sizes.bytes // _COPIED_BYTES,)
    return (
        KnownKernel("stream_copy", copied, (_COPY_BLOCK,), (buffer, buffer), bytes_moved=2 * sizes.bytes),
        chained("fma_short", sizes.iterations // 2),
        chained("fma_long", sizes.iterations),
        KnownKernel("lds_tree", (_LEAVES,), (_TREE_BLOCK,), (numbers, f"zeros:{_LEAVES // _TREE_BLOCK * 4}")),
    )


def kernels_of_testbed() -> Mapping[str, tuple[KnownKernel, ...]]:
    """Program to its kernels as it launches them without arguments."""
    edge, tile = 96, (16, 16)
    floats, halves = f"zeros:{edge * edge * 4}", f"zeros:{edge * edge * 2}"
    product = (floats, floats, floats, f"i32:{edge}")
    summed = 200_000
    smoothed, cells = 100, 112  # the edge, and in whole tiles
    tiles = (edge // 16 * _WAVE, edge // 16)  # a wave for each
    grid = f"zeros:{smoothed * smoothed * 4}"
    return {
        "gemm": (
            KnownKernel("gemm_naive", (edge, edge), tile, product),
            KnownKernel("gemm_tiled", (edge, edge), tile, product),
        ),
        "reduction": (
            KnownKernel(
                "reduce_lds", (32 * 256,), (256,), (f"zeros:{summed * 4}", "zeros:128", f"i32:{summed}")
            ),
            KnownKernel("reduce_shuffle", (_WAVE,), (_WAVE,), ("zeros:128", "zeros:4", "i32:32")),
        ),
        "mfma_gemm": (KnownKernel("gemm_mfma", tiles, (_WAVE, 1), (halves, halves, floats, f"i32:{edge}")),),
        "stencil": (KnownKernel("stencil", (cells, cells), tile, (grid, grid, f"i32:{smoothed}")),),
    }
