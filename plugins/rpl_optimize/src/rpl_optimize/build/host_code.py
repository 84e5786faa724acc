"""A candidate changes device code only: its host code stays that of the user's own source.

Where rpl compiles itself, one translation unit is made out of two texts. Where a command of the user builds,
the host code of both builds is compared.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rpl_core.values import frozen
from rpl_optimize.build.build_run import (
    BuildRun,
    Entry,
    StepFailedError,
    build_environment,
    dependency_command,
    is_device_code,
)
from rpl_optimize.interfaces.transformation import GuardVerdict

HOST_CODE: Final = "host-code"
#: A line that a candidate adds moves the lines behind it, and `assert` writes their numbers into host code.
#: That is refused, with the reason: with these words only such numbers were different.
SAME_LINES: Final = ("-w", "-D", "__LINE__=0")
MOVED_LINES: Final = (
    "the candidate moves lines whose numbers are in the host's code (assert, __LINE__): "
    "a #line behind the kernel keeps them"
)
_RELOCATABLE: Final = ("-fgpu-rdc", "-fno-gpu-rdc")
_BUNDLER: Final = "clang-offload-bundler"


def unit_id(source: Path) -> str:
    """An id of the translation unit that stays the same whatever the candidate and wherever it is built."""
    return hashlib.sha256(os.fsencode(source)).hexdigest()[:16]


def overlay(header: Path, text: Path) -> str:
    """A file for clang's ``-ivfsoverlay``, by which ``text`` is read where ``header`` is."""
    shown = {"type": "file", "name": header.name, "external-contents": str(text)}
    place = {"type": "directory", "name": str(header.parent), "contents": [shown]}
    return json.dumps({"version": 0, "use-external-names": "false", "roots": [place]})


@frozen
class SeparateCompile:
    """``command`` compiles its first path to the object at the second one; the compiler is its first word."""

    command: Callable[[Path, Path], tuple[str, ...]]
    place: Path
    environment: Mapping[str, str]
    unit_id: str

    def compile(self, run: BuildRun, device: Path, host: Path, target: Path) -> Path:
        """The object at ``target``. ``StepFailedError`` where a compiler fails or writes nothing."""
        relocatable = [word for word in self.command(host, target) if word in _RELOCATABLE][-1:]
        if relocatable == ["-fgpu-rdc"]:
            self._by_bundler(run, device, host, target)
        else:
            bundle = target.with_suffix(".hipfb")
            self._step(run, device, bundle, "--offload-device-only")
            given = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(bundle))
            self._step(run, host, target, "--offload-host-only", *given)
        return target

    def verdict(self, run: BuildRun, host: Path, candidate: bytes) -> GuardVerdict:
        """Whether the candidate's own host code is that of the text at ``host``: who accepts it compiles it.

        Both are compiled at the same path, without debug information.
        """
        texts = (candidate, host.read_bytes())
        try:
            if self._same_objects(run, host, texts):
                return GuardVerdict(HOST_CODE, True, "the host's code is that of the unchanged source")
            if self._same_objects(run, host, texts, *SAME_LINES):
                return GuardVerdict(HOST_CODE, False, MOVED_LINES)
        except StepFailedError as error:
            return GuardVerdict(HOST_CODE, False, f"the host's code can't be compared: {error}")
        return GuardVerdict(HOST_CODE, False, "the candidate changes the host's code, which was not used")

    def _same_objects(self, run: BuildRun, host: Path, texts: tuple[bytes, bytes], *more: str) -> bool:
        """Leaves the last text in its place."""
        objects = set()
        for text in texts:
            run.write(host, text)
            target = run.temporary / "host.o"
            target.unlink(missing_ok=True)
            self._step(run, host, target, "--offload-host-only", last=("-g0", "-w", *more))
            objects.add(target.read_bytes())
        return len(objects) == 1

    def _step(
        self, run: BuildRun, source: Path, output: Path, *more: str, last: tuple[str, ...] = ()
    ) -> None:
        compiler, *words = self.command(source, output)
        # The user's options come later and win, in both compilations; ``last`` comes behind them.
        command = (compiler, f"-cuid={self.unit_id}", *more, *words, *last)
        run.step(command, self.place, self.environment, recorded=not last)
        if not output.is_file():
            raise StepFailedError(f"the compiler ended well, but wrote no {output.name}")

    def _by_bundler(self, run: BuildRun, device: Path, host: Path, target: Path) -> None:
        """Compile both texts whole, then take the device's part of one and the host's part of the other."""
        parts = {}
        for name, source in (("device", device), ("host", host)):
            whole = target.with_suffix(f".{name}.o")
            self._step(run, source, whole)
            parts[name] = whole
        bundler = self._bundler(run, target)
        listed = run.step(
            (bundler, "-list", "-type=o", f"-input={parts['host']}"), self.place, self.environment
        )
        kinds = [line for line in map(str.strip, listed) if line.startswith(("host-", "hip"))]
        files = {kind: target.with_suffix(f".{number}.part") for number, kind in enumerate(kinds)}
        for name, whole in parts.items():
            own = [kind for kind in kinds if kind.startswith("host-") == (name == "host")]
            taken = [f"-output={files[kind]}" for kind in own]
            split = (f"-targets={','.join(own)}", f"-input={whole}", *taken)
            run.step((bundler, "-unbundle", "-type=o", *split), self.place, self.environment)
        given = [f"-input={files[kind]}" for kind in kinds]
        joined = (f"-targets={','.join(kinds)}", *given, f"-output={target}")
        run.step((bundler, "-type=o", *joined), self.place, self.environment)

    def _bundler(self, run: BuildRun, target: Path) -> str:
        """The one that belongs to the compiler."""
        asked = (self.command(target, target)[0], f"-print-prog-name={_BUNDLER}")
        lines = run.step(asked, self.place, self.environment)
        return lines[-1].strip() if lines else _BUNDLER


# Whether a candidate leaves the host's code as it was, where a command of the user builds it.
#
# Clang's driver writes down every compilation of a build when it is asked to (``CC_PRINT_OPTIONS``, clang's
# "Driver.cpp"). Those for the host that read the edited file are run again, once with the original text in
# its place and once with the candidate's: the same path, options, unit id and line numbers, no debug
# information. Unless both objects are bit-identical, the candidate is refused. So it is where nobody can
# tell: clang never saw the file, or another compiler read it.

_COMPILATIONS, _OF_OTHERS = "compilations.txt", "dependencies.txt"
_WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
#: Options of ``clang -cc1`` that write files beside the object, with a value of their own, and the object's.
_WRITING: Final = frozenset(
    (
        *("-o", "-dependency-file", "-MT", "-serialize-diagnostic-file", "-split-dwarf-file"),
        *("-split-dwarf-output", "-header-include-file", "-opt-record-file", "-stats-file"),
        *("-fcuda-include-gpubinary", "-diagnostic-log-file"),
    )
)
_WRITING_JOINED: Final = (
    "-debug-info-kind=",
    "-coverage-notes-file=",
    "-coverage-data-file=",
    "-stats-file=",
)
_PLACE: Final = "-fdebug-compilation-dir="
#: They stop before there is code; what comes of them is compiled later, as a file of another name.
_PREPROCESSING: Final = frozenset(("-E", "-rewrite-includes", "-frewrite-includes"))
_NO_CODE: Final = frozenset(("-fsyntax-only", "-Eonly", "-M", "-emit-pch", "-init-only"))
#: A rule of a makefile: what depends on what.
_RULE: Final = re.compile(r"^(?:[^\n\\]|\\.|\\\n)*?:(?=\s)((?:[^\n\\]|\\\n|\\.)*)", re.MULTILINE)
_MOST_RULE_BYTES: Final = 16 << 20


#: Of what a program loads by ``hipModuleLoad``: the program itself stays the user's.
NO_HOST_CODE: Final = GuardVerdict(HOST_CODE, True, "what is built holds device code alone")


@frozen
class Compilation:
    """One run of ``clang -cc1`` for the host, in ``place``; its input is the last word."""

    words: tuple[str, ...]
    place: Path

    @property
    def source(self) -> Path:
        return (self.place / self.words[-1]).resolve()

    @property
    def only_preprocesses(self) -> bool:
        return bool(_PREPROCESSING & set(self.words))

    def again(self, *more: str) -> tuple[str, ...]:
        """The command with ``more``, and without what writes files or describes lines for a debugger."""
        kept: list[str] = []
        rest = iter(self.words)
        for word in rest:
            if word in _WRITING:
                next(rest, None)
            elif not word.startswith(_WRITING_JOINED):
                kept.append(word)
        return (*kept[:-1], "-w", *more, kept[-1])  # of several actions the last one counts


def watching(folder: Path) -> dict[str, str]:
    """Variables by which compilers write into ``folder`` what they do: clang, and GCC what it reads."""
    return {
        "CC_PRINT_OPTIONS": "1",
        "CC_PRINT_OPTIONS_FILE": str(folder / _COMPILATIONS),
        "SUNPRO_DEPENDENCIES": str(folder / _OF_OTHERS),
    }


@frozen
class HostComparison:
    """``edited`` is where the candidate is written; dependency files are looked for in ``trees``.

    These are directories with the places where the build's commands see them; one holds ``edited``.
    """

    run: BuildRun
    environment: Mapping[str, str]
    edited: Path
    trees: Mapping[Path, Path]

    @property
    def _read(self) -> Path:
        """Where compilers read the candidate."""
        return self._as_seen(self.edited).resolve()

    def _as_seen(self, path: Path) -> Path:
        tree = next(tree for tree in self.trees if path.is_relative_to(tree))
        return self.trees[tree] / path.relative_to(tree)

    def verdict(self, original: bytes, candidate: bytes, built: Path) -> GuardVerdict:
        """Leaves the candidate in its place. A compiler that fails now refuses as well."""
        if is_device_code(built):
            return NO_HOST_CODE
        seen = tuple(_compilations(self.run.temporary / _COMPILATIONS))
        if self._read_by_others(seen):
            return _refused(f"another compiler than clang reads {self.edited.name} as well")
        try:
            if any(unit.only_preprocesses and self._reads(unit) for unit in seen):
                return _refused(f"{self.edited.name} is preprocessed in a step of its own")
            units = [unit for unit in seen if self._reads(unit)]
            if not units:
                return _refused(f"no compilation of {self.edited.name} for the host was seen")
            changed = self._changed(units, original, candidate)
            if changed is not None and self._changed(units, original, candidate, *SAME_LINES) is None:
                return _refused(MOVED_LINES)
        except StepFailedError as error:
            return _refused(f"the host's code can't be compared: {error}")
        if changed is not None:
            return _refused(
                f"the host's code of {changed.source.name} changes, that of the kernels alone may"
            )
        return GuardVerdict(HOST_CODE, True, f"the host's code of {len(units)} files is bit-identical")

    def _reads(self, unit: Compilation) -> bool:
        if unit.source == self._read:
            return True
        rules = self.run.temporary / "rules.d"
        rules.unlink(missing_ok=True)
        words = ("-Eonly", "-sys-header-deps", "-dependency-file", str(rules), "-MT", "unit")
        self.run.step(unit.again(*words), unit.place, self.environment, recorded=False)
        return any(path == self._read for path in prerequisites(rules, unit.place))

    def _changed(
        self, units: Iterable[Compilation], original: bytes, candidate: bytes, *more: str
    ) -> Compilation | None:
        objects: list[list[bytes]] = []
        units = list(units)
        for text in (original, candidate):  # ends with the candidate
            self.run.write(self.edited, text)
            objects.append([self._object(unit, more) for unit in units])
        pairs = zip(units, *objects, strict=True)
        return next((unit for unit, before, after in pairs if before != after), None)

    def _object(self, unit: Compilation, more: tuple[str, ...]) -> bytes:
        target, none = self.run.temporary / "host.o", self.run.temporary / "no-device-code"
        target.unlink(missing_ok=True)
        self.run.write(none, b"")
        device = ("-fcuda-include-gpubinary", str(none)) if "-fcuda-include-gpubinary" in unit.words else ()
        command = unit.again(*more, "-o", str(target), *device)
        self.run.step(command, unit.place, self.environment, recorded=False)
        if not target.is_file():
            raise StepFailedError(f"the compiler wrote no object of {unit.source.name}")
        return target.read_bytes()

    def _read_by_others(self, seen: Iterable[Compilation]) -> bool:
        """Whether a rule that was written in this build has another source that reads the edited file.

        GCC leaves the source itself out where the variable asks for rules; clang knows no such variable.
        """
        known = {unit.source for unit in seen}
        places = {*self.trees.values(), *(unit.place for unit in seen)}
        written = (path for tree in self.trees for path in tree.rglob("*.d") if path.is_file())
        files = [path for path in written if path.stat().st_mtime_ns >= self.run.begin_ns]
        rules = {path: self._as_seen(path.parent) for path in files}
        rules[self.run.temporary / _OF_OTHERS] = self.run.directory
        for path, place in rules.items():
            named = list(prerequisites(path, place, *places))
            if self._read in named and not known & set(named):
                return True
        return False


def _refused(reason: str) -> GuardVerdict:
    return GuardVerdict(HOST_CODE, False, reason)


def _compilations(log: Path) -> Iterator[Compilation]:
    """Those for the host that come to code, out of what the driver wrote."""
    text = log.read_text(encoding="utf-8", errors="surrogateescape") if log.is_file() else ""
    for line in text.splitlines():
        words = tuple(_ESCAPED.sub(r"\1", word) for word in _WORD.findall(line))
        if words[1:2] != ("-cc1",) or "-fcuda-is-device" in words or _NO_CODE & set(words):
            continue
        if words[-3:-1] == ("-x", "ir"):  # what an earlier compilation wrote
            continue
        place = next((word[len(_PLACE) :] for word in words if word.startswith(_PLACE)), "/")
        yield Compilation(words, Path(place))


def prerequisites(rules: Path, *places: Path) -> Iterator[Path]:
    """What the rules of a dependency file name, relative to each of ``places``."""
    if not rules.is_file() or rules.stat().st_size > _MOST_RULE_BYTES:
        return
    for rule in _RULE.finditer(rules.read_text(encoding="utf-8", errors="surrogateescape")):
        for word in re.split(r"(?<!\\)\s+", rule[1].replace("\\\n", " ").strip()):
            for place in places if word else ():
                yield (place / _ESCAPED.sub(r"\1", word)).resolve()


# Which sources of a compile database include a header: the compiler of each is asked (``-MM``).


def including(run: BuildRun, entries: Iterable[Entry], header: Path) -> tuple[Entry, ...]:
    """Those whose file reads ``header``. A file that its compiler can't preprocess is taken for none."""
    return tuple(entry for entry in entries if _includes(run, entry, header))


def _includes(run: BuildRun, entry: Entry, header: Path) -> bool:
    rules = run.temporary / "includes.d"
    rules.unlink(missing_ok=True)
    command = dependency_command(entry, rules)
    try:
        run.step(command, entry.directory, build_environment(run.temporary, entry.directory), recorded=False)
    except StepFailedError:
        return False
    return header in prerequisites(rules, entry.directory)
