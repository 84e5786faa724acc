"""What rpl proposes for public HIP kernels, and what of it passes all guards before a build is measured.

    python benchmarks/public_kernels.py --folder ~/public --kernels kernels.tsv -- clang++ -x hip -O3 ...
    python benchmarks/public_kernels.py --folder ~/HeCBench/src --match '*-hip/*' -- hipcc -O3

Every kernel's candidates are judged by the compiler and options behind ``--``, then compiled for the GPU and
compared with the original; nothing is run. ``--kernels`` is a table of repository, commit, file and kernel
with a line of names; the repositories lie in ``--folder`` by their last names. Without it all kernels below
``--folder`` count. In an option ``{repository}`` stands for the folder of the repository, ``{folder}`` for
that of the source. With ``--enough`` a kernel is done once a proposal passes that is neither an unrolling nor
a launch bound, cheap ones first: the shares are the same, the rows per transformation count what was tried.
A kernel in a header is compiled if ``--instances`` says of what: lines of the header's path below
``--folder``, a tab, and what is to stand behind it (``template class Sum<float>;``).
``--record`` keeps each kernel's outcome in a file and does not ask again for those that are in it. The file
begins with what decides outcomes (compiler and options, instances, ``--enough``) and is refused for others.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from rpl_codeobject.comparing import LaunchAssumption
from rpl_codeobject.kernel_code import CodeObject
from rpl_core.model.device import Architecture
from rpl_core.values import frozen
from rpl_gfx942.plugin import rpl_device_models
from rpl_optimize.contracts import GuardPart
from rpl_optimize.interfaces.proposer import InstalledTransformation
from rpl_optimize.interfaces.transformation import (
    EditCandidate,
    GuardVerdict,
    KernelSource,
    SeveralBlocks,
    ShuffledReduction,
)
from rpl_optimize.loop.binary_stage import LaunchLimit, guard_binary
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.judge import MeaningJudge
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.transform import apply_edits, collect_offers
from rpl_transforms.plugin import rpl_transformations
from rpl_transforms.resource_screen import BuildCompiler, NotCompiled
from rpl_transforms.source_file import read_source_file

_SUFFIXES = (".cu", ".hip", ".cpp", ".cc")
_MOST_BYTES = 2 << 20
_PLAIN = frozenset(("unroll", "threads-per-block", "waves-per-eu"))
#: Those whose edits the judge has to read with all headers, and ``restrict``, which reads the host's, too.
_DEAR = ("coarsening", "wide-elements", "restrict")


@frozen
class Outcome:
    """Of one kernel: transformations with a proposal that passes, and of the others the guard and reason."""

    file: str
    kernel: str
    passed: tuple[str, ...]
    refused: tuple[tuple[str, str, str], ...]
    unreadable: str | None = None


class Judged:
    """One source with everything that is asked of it."""

    def __init__(
        self,
        path: Path,
        words: Sequence[str],
        readable: Path,
        architecture: Architecture,
        instances: Sequence[str],
    ) -> None:
        self.path = path.resolve()
        self.text = self.path.read_bytes()
        front_end = FrontEnd(
            tuple(words),
            self.path,
            self.path,
            self.path.parent,
            readable=(readable,),
            instances=tuple(instances),
        )
        self._judge = MeaningJudge(front_end, self.text)
        self.reading = CompilerReading(front_end, self.text, self._judge.original)
        self._architecture = architecture
        self._built: CodeObject | NotCompiled | None = None
        self._compiler = BuildCompiler(self.reading, architecture.name)

    def outcome(
        self, kernel: str, transformations: Sequence[InstalledTransformation], name: str, *, enough: bool
    ) -> Outcome:
        """The first candidate of each transformation that passes everything, or why none does."""
        unit = self.reading.parsed()
        if isinstance(unit, str):
            return Outcome(name, kernel, (), (), unit)
        source = KernelSource(str(self.path), self.text, kernel, reading=self.reading)
        passed, refused = [], []
        for one in sorted(transformations, key=lambda one: _order(one.transformation.name)):
            against = []
            transformation = one.transformation.name
            for candidate in (offered.candidate for offered in collect_offers(source, (one,)).candidates):
                if candidate.kernel != kernel:
                    continue
                refusal = self._against(candidate)
                if refusal is None:
                    passed.append(transformation)
                    break
                against.append((transformation, refusal.guard, refusal.reason))
            else:
                refused += against
            if enough and set(passed) - _PLAIN:
                break
        return Outcome(name, kernel, tuple(passed), tuple(refused))

    def _against(self, candidate: EditCandidate) -> GuardPart | GuardVerdict | None:
        refusal = next((guard for guard in candidate.guards if not guard.passed), None)
        if refusal is not None:
            return refusal
        after = apply_edits(self.text, candidate.edits)
        meaning = self._judge.judge(after, candidate.declares)
        refusal = next((verdict for verdict in meaning.verdicts if not verdict.passed), None)
        if refusal is not None:
            return refusal
        if self._built is None:
            self._built = self._compiler.compile(self.text)
        built = self._compiler.compile(after)
        for side in (self._built, built):
            if isinstance(side, NotCompiled):
                return GuardVerdict("compiles", False, side.reason)
        assert candidate.kernel is not None
        most = candidate.workgroup_limit
        parts = guard_binary(
            (self._built,),
            (built,),
            candidate.kernel,
            launch=LaunchAssumption(),
            architecture_of=lambda _: self._architecture,
            must_change_loop=candidate.changes_loop,
            limit=None if most is None else LaunchLimit(most, None),
            lds_growth=candidate.lds_growth,
            exchanged=sum(isinstance(one, ShuffledReduction) for one in candidate.declares),
            repeated=any(isinstance(one, SeveralBlocks) for one in candidate.declares),
        )
        # Nothing ran, so there is no launch that could be compared with a promise.
        return next((part for part in parts if not part.passed and part.guard != "launch-limit"), None)


def _order(transformation: str) -> tuple[int, bool]:
    """Those that only ``--enough`` may leave out last, by what they cost."""
    return (_DEAR.index(transformation) if transformation in _DEAR else -1, transformation in _PLAIN)


def table(outcomes: Sequence[Outcome]) -> str:
    """For a page in Markdown."""
    count = len(outcomes)
    any_passed = sum(bool(one.passed) for one in outcomes)
    others = sum(bool(set(one.passed) - _PLAIN) for one in outcomes)
    rows = [("kernels", str(count)), ("with a proposal that passes all guards", _share(any_passed, count))]
    rows.append(("with one other than unrolling and launch bounds", _share(others, count)))
    unreadable = sum(one.unreadable is not None for one in outcomes)
    rows.append(("of files that the compiler can't read", str(unreadable)))
    named = Counter(name for one in outcomes for name in one.passed)
    rows += [(f"passes: {name}", str(number)) for name, number in named.most_common()]
    against = Counter(
        f"{transformation}: {guard}: {reason[:70]}"
        for one in outcomes
        for transformation, guard, reason in {(t, g, _general(r)) for t, g, r in one.refused}
    )
    rows += [(f"refused: {why}", str(number)) for why, number in against.most_common()]
    return "\n".join(["| what | kernels |", "|---|---|", *(f"| {what} | {shown} |" for what, shown in rows)])


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.0f} %)" if whole else "0"


def _general(reason: str) -> str:
    """A reason without the names of one kernel."""
    return " ".join(word for word in reason.split() if not any(c.isdigit() or c in "_'`" for c in word))


def _filled(word: str, folders: Mapping[str, str]) -> str:
    for name, folder in folders.items():
        word = word.replace(name, folder)
    return word


def _recorded(record: Path, made_with: Mapping[str, object]) -> dict[tuple[str, str], Outcome] | None:
    """Outcomes by file and kernel; ``None`` where the file was made with something else."""
    if not record.is_file():
        record.write_text(json.dumps(made_with) + "\n", encoding="utf-8")
    first, *lines = record.read_text(encoding="utf-8").splitlines()
    if json.loads(first) != made_with:
        return None
    entries = [json.loads(line) for line in lines]
    outcomes = [
        Outcome(**{**one, "passed": tuple(one["passed"]), "refused": tuple(map(tuple, one["refused"]))})
        for one in entries
    ]
    return {(one.file, one.kernel): one for one in outcomes}


def _listed(kernels: Path, folder: Path) -> Iterator[tuple[Path, Path, str]]:
    """Folder of the repository, file and kernel of each line."""
    lines = kernels.read_text(encoding="utf-8").splitlines()
    for line in lines[1:]:
        repository, _, file, kernel = line.split("\t")[:4]
        place = folder / repository.rpartition("/")[2]
        yield place, place / file, kernel


def _found(folder: Path, match: str) -> Iterator[tuple[Path, Path, str]]:
    for path in sorted(folder.rglob("*")):
        fits = path.suffix in _SUFFIXES and fnmatch.fnmatch(str(path.relative_to(folder)), match)
        if fits and not path.is_symlink() and path.is_file() and path.stat().st_size <= _MOST_BYTES:
            for kernel in read_source_file(path.read_bytes()).editable_kernels():
                yield folder, path, kernel.name


def main() -> int:
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the sources are")
    parser.add_argument("--kernels", type=Path, help="table of the kernels; else all below --folder")
    parser.add_argument("--instances", type=Path, help="table of what is made of the templates of headers")
    parser.add_argument("--enough", action="store_true", help="one proposal per kernel is enough")
    parser.add_argument("--record", type=Path, help="file of outcomes, read and continued")
    parser.add_argument("--match", default="*", help="pattern of paths below --folder")
    given = parser.parse_args(arguments[:at])
    words = arguments[at + 1 :]
    if not words:
        parser.error("name the compiler and its options behind --")
    architecture = next(one.architecture_facts for one in rpl_device_models() if one.architecture_facts)
    transformations = tuple(InstalledTransformation("transforms", one) for one in rpl_transformations({}))
    outcomes: list[Outcome] = []
    judged: Judged | None = None
    kernels = (
        _found(given.folder, given.match) if given.kernels is None else _listed(given.kernels, given.folder)
    )
    instances: dict[str, list[str]] = {}
    if given.instances is not None:
        for line in given.instances.read_text(encoding="utf-8").splitlines():
            instances.setdefault(line.partition("\t")[0], []).append(line.partition("\t")[2])
    made_with = {"words": words, "enough": given.enough, "instances": instances}
    known = {} if given.record is None else _recorded(given.record, made_with)
    if known is None:
        parser.error(f"{given.record} was made with other words, instances or --enough; name another file")
    for place, path, kernel in kernels:
        name = str(path.relative_to(given.folder))
        if (name, kernel) in known:
            outcomes.append(known[name, kernel])
            continue
        if judged is None or judged.path != path.resolve():
            folders = {"{repository}": str(place), "{folder}": str(path.parent)}
            options = [_filled(word, folders) for word in words]
            judged = Judged(path, options, given.folder.resolve(), architecture, instances.get(name, ()))
        outcome = judged.outcome(kernel, transformations, name, enough=given.enough)
        outcomes.append(outcome)
        # What the compiler had no time for says nothing of the kernel: it is asked again.
        answered = "did not end within" not in f"{outcome.unreadable} {outcome.refused}"
        if given.record is not None and answered:
            with given.record.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(attrs.asdict(outcome)) + "\n")
        print(
            outcome.file,
            kernel,
            outcome.unreadable or ",".join(outcome.passed) or "-",
            file=sys.stderr,
            flush=True,
        )
    print(table(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
