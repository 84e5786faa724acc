"""Builds the HIP programs of HeCBench, runs each on the emulated GPU, and says which came out right.

    RPL_EMU_FOLDER=build python tools/hecbench/run.py CHECKOUT [PROGRAM ...] [--record FILE]

CHECKOUT is one of https://github.com/zjin-lcf/HeCBench that may be written to: programs are built in it as
their Makefiles say, with a `hipcc` of clang and the runtime of `rpl emu get-runtime`. What they are
called with: arguments.tsv where their own run would take long (`;;` parts several runs), else what `make run`
does. sizes.tsv makes sizes smaller that stand in the sources; prints.tsv lets programs check or print their
result that would not.

A row of FILE (default results.tsv beside this script, which holds the project's own run) for each program:

    pass      its own words say so (words.tsv has each program's; else a line with PASS or its like)
    x86       what it prints, times left out, is what its OpenMP sibling prints, built for this CPU, or what
              its text prints that g++ compiled over x86/hip/hip_runtime.h, its threads one after the other
    no-check  it ran to its end, and none of these says whether that is right
    unfit     by its text it has no one right result on a wave of 64 lanes; unfit.tsv says why
    differs   it prints other results than both, by numbers or by lines
    wrong     its own words say that it failed, or it ended with an error
    refused   it reached what the emulator does not offer; the last column has the emulator's line
    limit     it did not end in --seconds, or printed more than is read
    not-built the compiler's first error, or the library that is absent
    not-run   its `make run` needs what is not here: data that is not in the checkout, Python packages

Programs with a row are left out: a run that was stopped goes on where it was. ``--again CLASS`` (or names)
does them anew.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from attrs import evolve
from demo import NotHereError, compiler, fetched_runtime, link_words

from rpl_core.values import frozen
from rpl_emu.demo.steps import RPL
from rpl_emu.software_gpu import FOLDER_VARIABLE

HERE = Path(__file__).resolve().parent
#: The commit that arguments.tsv, words.tsv and results.tsv were made for.
COMMIT = "f27000a5188f8ac79bd43fc95a1b3f890c18823d"
#: Tried as any other, and told apart: their headers are in no package of the runtime.
LIBRARIES = re.compile(
    r"[<'\"](?P<name>hipblaslt|hipblas|hipcub|hipfft|hiprand|hipsolver|hipsparse|mpi|boost|gsl|miopen|rccl|"
    r"rocblas|rocprim|rocrand|rocwmma|thrust|omp|cblas|mkl|oneapi)[/.][\w./]*[>'\"]"
)
_PASS = re.compile(
    r"\bPASS(ED)?\b|\b[Pp]assed\b|\bpass\W*$|\b(SUCCESS|[Ss]uccess(ful)?)\b|\b[Vv]erified\b|\b[Cc]orrect\b|\bOK\b"
)
_FAIL = re.compile(
    r"\bfail(s|ed|ures?)?\b|\bmis-?match(es|ed)?\b|\bincorrect\b|\bwrong\b|\bnot equal\b|"
    r"\berrors?\s*([:!]|in\b|at\b|code\b)",
    re.IGNORECASE,
)
#: What follows says how many or how large. Of none or a small one the line is a pass; of an error's size
#: alone it is no verdict.
_COUNTED = re.compile(
    r"\b(?P<what>fail|mis-?match|error)\w*(?:.{0,40}?[:=]\s*|\D{0,40}?)(?P<number>\d+\.?\d*(?:e[-+]?\d+)?)\b",
    re.IGNORECASE,
)
#: In the words of a program that ended with an error: it had nothing to work on.
_NO_DATA = re.compile(
    r"no such file|(can('|no)t|unable|could not|fail\w*|error)\W+(to )?(open|load|read|find)|does not exist",
    re.IGNORECASE,
)
_SMALL = 1e-3
#: A small number is the one that is allowed, or beside one that is none.
_NO_SIZE = re.compile(r"toleran|threshold|\bnan\b", re.IGNORECASE)
#: Characters that a program may print in one call.
_MOST_PRINTED = 4 << 20
#: Lines about times, rates, devices and memory, which differ from run to run and from CPU to GPU.
_TIMES = re.compile(
    r"tim(e|ing)|seconds?\b|\bsecs?\b|\d\s*\(?([mun]?s|sec)\b|[GM]B/s|[GMT]i?B|FLOP|bandwidth|throughput|"
    r"speed-?up|device|platform|thread|\bper\s+(second|iteration)|latency|clock|cycles|duration|elapsed",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
_CLOSE = 1e-4
_TWO_ROUNDINGS = "EXTRA_CFLAGS=-ffp-contract=off"
#: They end at once where they find one GPU.
_FOR_TWO_GPUS = frozenset({"p2p"})


@frozen
class Row:
    program: str
    outcome: str
    arguments: str
    detail: str


class NoReferenceError(Exception):
    """There is nothing by the same program's text for x86 to compare with."""


class Checkout:
    """The programs, and what they are built and run with."""

    def __init__(self, folder: Path, openmp: Path, seconds: float) -> None:
        self.sources = folder / "src"
        #: What each program printed.
        self.outputs = folder / "emulated"
        self.seconds = seconds
        clang = compiler()
        runtime = fetched_runtime(clang)
        bitcode = next(runtime.glob("usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
        words = [clang, "--offload-arch=gfx942", "-mcode-object-version=5", f"--rocm-path={runtime / 'usr'}"]
        words += [f"--rocm-device-lib-path={bitcode}", "-isystem", str(runtime / "usr/include"), "-w"]
        words += ["-D__AMDGCN_WAVEFRONT_SIZE=64", "-D__HIP_PLATFORM_AMD__"]
        headers = subprocess.run(
            ["g++", "-print-file-name=include"], capture_output=True, text=True, check=True
        )
        (openmp / "omp.h").symlink_to(Path(headers.stdout.strip(), "omp.h"))
        self.environment = {
            **os.environ,
            "HIPCC_COMPILE": " ".join(words),
            "HIPCC_LINK": " ".join(link_words(runtime)),
            "HIPCC_OPENMP": str(openmp),
            "OMP_NUM_THREADS": "1",
        }
        if emulator := os.environ.get(FOLDER_VARIABLE):
            # Programs run in their own folders.
            self.environment[FOLDER_VARIABLE] = str(Path(emulator).resolve())
        self.arguments = _table("arguments.tsv")
        self.words = _table("words.tsv")

    def names(self) -> list[str]:
        return [path.name.removesuffix("-hip") for path in sorted(self.sources.glob("*-hip"))]

    def tried(self, program: str, *options: str) -> Row:
        """Build, run, judge. ``options`` are of make."""
        folder = self.sources / f"{program}-hip"
        changed = self.changed(program)
        shutil.rmtree(self.sources / f"{program}-x86", ignore_errors=True)  # of other sizes
        built = self.make(folder, *options)
        if built.returncode:
            return Row(program, "not-built", "", _why_not_built(built.stderr + built.stdout))
        commands = self.commands(program, folder)
        said = changed + " ;; ".join(shlex.join(command) for command in commands)
        if not commands:
            return Row(program, "not-run", "", "`make run` calls no program of its folder")
        output = ""
        for given in {folder / word for command in commands for word in command[1:]}:
            if (packed := given.with_name(f"{given.name}.bz2")).exists():
                given.write_bytes(bz2.decompress(packed.read_bytes()))
        for command in commands:
            launcher = [*RPL, "-q", "emu", "run", "--time-limit", str(self.seconds)]
            launcher += ["--gpus", "2"] if program in _FOR_TWO_GPUS else []
            status, printed, errors = self.call([*launcher, "--", *command], folder)
            output += printed
            if status == 69:
                return Row(program, "refused", said, _line(errors, "rpl|softkfd|emu"))
            if status == 124:
                return Row(program, "limit", said, _line(errors, "limit"))
            if status and _NO_DATA.search(errors + printed):
                return Row(program, "not-run", said, _line(errors + printed, _NO_DATA.pattern))
            if status:
                return Row(
                    program, "wrong", said, f"ended with {status}: {_line(errors + printed, 'rror|fault')}"
                )
            if len(printed) > _MOST_PRINTED:
                return Row(program, "limit", said, f"printed more than {_MOST_PRINTED} characters")
        self.outputs.mkdir(exist_ok=True)
        (self.outputs / f"{program}.txt").write_text(output)
        return self.judged(program, said, output, commands, alike=_TWO_ROUNDINGS in options)

    def changed(self, program: str) -> str:
        """Its sources by both tables. Raises SystemExit where one does not hold what is replaced."""
        told = []
        for table in ("sizes.tsv", "prints.tsv"):
            for row in (HERE / table).read_text().splitlines():
                name, file, old, new = row.split("\t")
                if name == program:
                    text = (self.sources / file).read_text(errors="surrogateescape")
                    if old not in text and new not in text:
                        raise SystemExit(f"{file} holds no {old!r}: this is another commit than {COMMIT}")
                    if old not in new or new not in text:  # once, where the old stands in the new
                        (self.sources / file).write_text(text.replace(old, new), errors="surrogateescape")
                    if file.startswith(f"{program}-omp/"):
                        continue  # as the program's own
                    told.append(f"[{old} -> {new}] " if table == "sizes.tsv" else "[prints.tsv] ")
        return "".join(dict.fromkeys(told))

    def judged(self, program: str, said: str, output: str, commands: list[list[str]], *, alike: bool) -> Row:
        """By its own words, else by x86. ``alike``: it was built to round as x86 does."""
        if program in self.words:
            if right := re.search(self.words[program], output, re.MULTILINE | re.DOTALL):
                return Row(program, "pass", said, f"as words.tsv has it: {_line(right[0], '.')}")
            return Row(program, "wrong", said, f"nothing says {self.words[program]!r}: {_line(output, '.')}")
        verdicts = [(verdict, line.strip()) for line in output.splitlines() if (verdict := _verdict(line))]
        for wanted in ("wrong", "pass"):
            if found := [line for verdict, line in verdicts if verdict == wanted]:
                return Row(program, wanted, said, found[0 if wanted == "wrong" else -1])
        ours = _results(output)
        if not any(_NUMBER.search(line) for line in ours):
            return Row(program, "no-check", said, "no check, and it prints no result")
        unknown, differences = [], []
        for what, reference in (("its OpenMP sibling", self.sibling), ("its own text", self.own_text)):
            try:
                theirs = _results(reference(program, commands))
                difference = _difference(ours, theirs)
                steady = not difference or not _difference(theirs, _results(reference(program, commands)))
            except NoReferenceError as error:
                unknown.append(str(error))
                continue
            if difference is None:
                last = max(reversed(ours), key=lambda line: len(re.findall(r"[:=]\s*[-+.\d]", line)))
                also = " alone" if differences else ""
                told = f"as {what}{also} has it, {len(ours)} lines, among them {_short(last)}"
                return Row(program, "x86", said, told)
            if steady:
                differences.append(difference)
            else:
                unknown.append(f"{what} prints another result each time")
        if not differences:
            return Row(program, "no-check", said, f"no check; {'; '.join(unknown)}")
        difference = _short("; ".join(differences))
        if alike or " lines, x86 " in differences[-1]:
            return Row(program, "differs", said, difference)
        # hipcc makes one rounding of a product and a sum, g++ for x86 two.
        self.make(self.sources / f"{program}-hip", "clean")
        rounded = self.tried(program, _TWO_ROUNDINGS)
        self.make(self.sources / f"{program}-hip", "clean")
        return evolve(rounded, detail=f"by {_TWO_ROUNDINGS}: {rounded.detail}; else {difference}")

    def sibling(self, program: str, commands: list[list[str]]) -> str:
        """What the OpenMP program prints. Raises NoReferenceError."""
        folder = self.sources / f"{program}-omp"
        if not (folder / "Makefile.aomp").exists():
            raise NoReferenceError("no OpenMP sibling")
        built = self.make(folder, "-f", "Makefile.aomp", "DEVICE=cpu", "CC=g++")
        if built.returncode:
            raise NoReferenceError(f"its sibling is not built: {_why_not_built(built.stderr)}")
        return self.printed_on_x86(commands, folder, "its sibling")

    def own_text(self, program: str, commands: list[list[str]]) -> str:
        """What the program prints when its kernels are loops. Raises NoReferenceError."""
        folder = self.sources / f"{program}-x86"
        if not folder.exists():
            shutil.copytree(self.sources / f"{program}-hip", folder)
            self.make(folder, "clean")
            built = self.make(folder, path=HERE / "x86")
            if built.returncode:
                shutil.rmtree(folder)
                raise NoReferenceError(f"its text for x86 is not built: {_why_not_built(built.stderr)}")
        return self.printed_on_x86(commands, folder, "its text for x86")

    def printed_on_x86(self, commands: list[list[str]], folder: Path, what: str) -> str:
        expected = ""
        for command in commands:
            status, printed, _ = self.call(command, folder)
            if status:
                raise NoReferenceError(f"{what} ended with {status}")
            expected += printed
        if re.search(r"\bnan\b", expected, re.IGNORECASE):
            raise NoReferenceError(f"{what} computes not-a-number on this CPU")
        return expected

    def commands(self, program: str, folder: Path) -> list[list[str]]:
        """The program's calls, which begin with its path."""
        if program in self.arguments:
            target = self._program(folder)
            return [[target, *part.split()] for part in self.arguments[program].split(";;")] if target else []
        listed = self.make(folder, "-n", "run").stdout.replace("\\\n", " ")
        calls = (line.strip() for line in listed.splitlines())
        return [
            shlex.split(line.partition(">")[0]) for line in calls if line.startswith("./") and "$" not in line
        ]

    def _program(self, folder: Path) -> str | None:
        listed = self.make(folder, "-n", "run").stdout
        found = re.search(r"(?:^|\s)(\./[\w+-]+)", listed)
        return found[1] if found else None

    def make(self, folder: Path, *words: str, path: Path = HERE) -> subprocess.CompletedProcess[str]:
        """``path`` has the hipcc."""
        command = ["make", "-C", str(folder), *words]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            env={**self.environment, "PATH": f"{path}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
        )

    def call(self, command: list[str], folder: Path) -> tuple[int, str, str]:
        """Status as a shell has it, output, errors. What does not end by itself has 124."""
        with (
            tempfile.TemporaryFile("w+", errors="replace") as out,
            tempfile.TemporaryFile("w+", errors="replace") as err,
        ):
            try:
                status = subprocess.run(
                    command,
                    stdout=out,
                    stderr=err,
                    cwd=folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    timeout=self.seconds + 15,
                ).returncode
            except subprocess.TimeoutExpired:
                status = 124
            except OSError as error:
                return 127, "", str(error)
            out.seek(0)
            err.seek(0)
            return status, out.read(_MOST_PRINTED + 1), err.read(1 << 20)


def _table(name: str) -> dict[str, str]:
    rows = (HERE / name).read_text().splitlines()
    return {name: words for name, _, words in (row.partition("\t") for row in rows)}


def _why_not_built(text: str) -> str:
    errors = [line for line in text.splitlines() if re.search(r"\berror\b|Error|undefined", line)]
    first = errors[0] if errors else text.strip()[-160:]
    library = LIBRARIES.search(first)
    return f"needs {library['name']}" if library and "not found" in first else _short(first)


def _line(text: str, pattern: str) -> str:
    """The last line that has it, else the last one."""
    lines = [line for line in text.splitlines() if line.strip()]
    return _short(
        next(
            (line for line in reversed(lines) if re.search(pattern, line, re.IGNORECASE)),
            lines[-1] if lines else "no word",
        )
    )


def _short(line: str) -> str:
    return re.sub(r"\S*/(?=[^/\s]+)", "", line).strip()[:300]


def _verdict(line: str) -> str | None:
    """What a line says of its program: "pass", "wrong", nothing."""
    counted = [(found["what"].lower(), float(found["number"])) for found in _COUNTED.finditer(line)]
    if any(what != "error" and number > _SMALL for what, number in counted):
        return "wrong"
    if re.search(r"\bPASS", line) and not re.search(r"\bFAIL", line):
        return "pass"
    if counted:
        known = all(number <= _SMALL for _, number in counted) and not _NO_SIZE.search(line)
        return "pass" if known else None
    if _FAIL.search(line):
        return "wrong"
    return "pass" if _PASS.search(line) else None


def _results(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and not _TIMES.search(line)]


def _difference(ours: list[str], theirs: list[str]) -> str | None:
    """None where words are equal and numbers differ by less than 1e-4 of the larger."""
    if len(ours) != len(theirs):
        return f"{len(ours)} lines, x86 {len(theirs)}"
    for one, other in zip(ours, theirs, strict=True):
        mine, its = (["".join(part.split()) for part in _NUMBER.split(line)] for line in (one, other))
        if mine != its:
            return f"{one!r}, x86 {other!r}"
        for number, expected in zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True):
            if not math.isclose(float(number), float(expected), rel_tol=_CLOSE, abs_tol=1e-12):
                return f"{one!r}, x86 {other!r}"
    return None


def _read(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {row[0]: Row(*row) for row in list(csv.reader(file, delimiter="\t"))[1:]}


def _write(path: Path, rows: dict[str, Row]) -> None:
    beside = path.with_suffix(".part")
    with beside.open("w", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(("program", "outcome", "called_with", "detail"))
        for _, row in sorted(rows.items()):
            table.writerow((row.program, row.outcome, row.arguments, " ".join(row.detail.split())))
    beside.replace(path)


def main() -> int:
    """1 where a program came out wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--record", type=Path, default=HERE / "results.tsv")
    parser.add_argument("--seconds", type=float, default=60, help="for each call of a program")
    parser.add_argument("--again", nargs="+", default=[], help="classes or programs")
    given = parser.parse_args()
    rows, unfit = _read(given.record), _table("unfit.tsv")
    with tempfile.TemporaryDirectory() as openmp:
        try:
            checkout = Checkout(given.checkout.resolve(), Path(openmp), given.seconds)
        except NotHereError as reason:
            sys.exit(f"hecbench: {reason}")
        names = checkout.names()
        if not names or not set(given.programs) <= set(names):
            absent = ", ".join(sorted(set(given.programs) - set(names))) or "program"
            sys.exit(f"hecbench: there is no {absent} in {checkout.sources}")
        for program in given.programs or names:
            if program not in rows or {program, rows[program].outcome} & set(given.again):
                row = rows[program] = checkout.tried(program)
                if row.outcome in ("wrong", "differs") and program in unfit:
                    row = rows[program] = evolve(row, outcome="unfit", detail=unfit[program])
                print(f"{row.outcome:9} {program}: {row.detail}", flush=True)
                _write(given.record, rows)  # a run that is stopped leaves what it had
    counted = Counter(row.outcome for row in rows.values())
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counted.items())))
    return 1 if counted["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
