"""One configuration's commands from templates, what they depend on, and what its code object says."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_autotune.interfaces import SearchSpace, Value, Variant
from rpl_codeobject.occupancy import (
    ArchitectureOf,
    CodeOccupancy,
    LaunchAssumption,
    LaunchedKernel,
    compiled_occupancy,
)
from rpl_core.errors import RplError, UsageError
from rpl_core.files import sha256_of
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.space import Expression

#: Larger files, such as data sets, count by size and time of change: hashing them would take too long.
_MOST_BYTES = 256 << 20
#: With more sources around the built one nobody looks at all of them for one build (chosen).
_MOST_SOURCES = 2000
_SOURCE_SUFFIXES = frozenset(
    (
        *(".h", ".hh", ".hpp", ".hxx", ".cuh", ".inc", ".inl", ".ipp", ".def", ".c", ".cc", ".cpp", ".cxx"),
        *(".cu", ".hip", ".cl", ".s", ".S", ".py", ".mk", ".cmake"),
    )
)
_SOURCE_NAMES = frozenset(("Makefile", "CMakeLists.txt"))


def text_digest(parts: Iterable[str]) -> str:
    """One hash of several texts, which differ also where they are only divided differently."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def command_digest(words: Sequence[str], place: Path) -> str:
    """The hash of the program and of every file that the command names."""
    return text_digest(part for path in _files(words, place) for part in (path.name, _content(path)))


def source_digest(words: Sequence[str], place: Path) -> str | None:
    """The hash of what a build reads: compiler, named files, and the sources around them.

    ``None`` where there are too many to look at: then nobody can say that a build would be the same.
    Headers elsewhere (of the system, of libraries) are not seen.
    """
    named = list(_files(words, place))
    folders = {path.parent for path in named[1:]} | set(_include_folders(words, place))
    around: set[Path] = set()
    for folder in folders:
        for path in folder.rglob("*"):
            if path.suffix in _SOURCE_SUFFIXES or path.name in _SOURCE_NAMES:
                around.add(path)
            if len(around) > _MOST_SOURCES:
                return None
    files = [*named, *sorted(around - set(named))]
    return text_digest(part for path in files if path.is_file() for part in (str(path), _content(path)))


def _files(words: Sequence[str], place: Path) -> Iterator[Path]:
    """The program first, then the files among the other words."""
    for number, word in enumerate(words):
        path = place / word
        if number == 0 and not path.is_file():
            found = shutil.which(word)
            path = Path(found) if found else path
        if word and path.is_file():
            yield path.resolve()


def _include_folders(words: Sequence[str], place: Path) -> Iterator[Path]:
    for word in words:
        if word.startswith("-I") and (place / word[2:]).is_dir() and len(word) > 2:
            yield place / word[2:]


def _content(path: Path) -> str:
    status = path.stat()
    if status.st_size > _MOST_BYTES:
        return f"{status.st_size} {status.st_mtime_ns}"
    return sha256_of(path)


PROGRAM = "{program}"
_OUTPUT, _DEFINES = "{output}", "{defines}"
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")


@frozen
class Templates:
    """Words of the commands; ``defines`` are the parameters that ``{defines}`` stands for.

    ``sources`` is the digest of what is built from, ``None`` where nothing is built or nobody can tell.
    """

    command: tuple[str, ...]
    build: tuple[str, ...] = ()
    validate: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    sources: str | None = None

    def variant(self, space: SearchSpace, index: int) -> Variant:
        """The commands of one configuration."""
        values = space.values(index)
        build = tuple(self._build_words(values))
        return Variant(
            index=index,
            build=build,
            build_key=text_digest([*build, self.sources or ""]) if build else None,
            command=tuple(_filled(word, values) for word in self.command),
            validate_command=tuple(_filled(word, values) for word in self.validate),
        )

    def _build_words(self, values: Mapping[str, Value]) -> Iterable[str]:
        for word in self.build:
            if word == _DEFINES:
                yield from (f"-D{name}={value_text(values[name])}" for name in self.defines)
            else:
                yield _filled(word, values)


def value_text(value: Value) -> str:
    """A value as commands get it: truth values as 1 and 0, which compilers and programs understand."""
    if isinstance(value, bool):
        return str(int(value))
    return str(value)


def _filled(word: str, values: Mapping[str, Value]) -> str:
    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group(0)[0]
        return value_text(values[name]) if name in values else match.group(0)

    return _PLACEHOLDER.sub(fill, word)


def filled_path(template: str, space: SearchSpace, index: int) -> Path:
    """The file that ``template`` names for one configuration."""
    _require_known(space, "--code-object", (template,), set())
    return Path(_filled(template, space.values(index)))


def read_templates(
    space: SearchSpace,
    command: str,
    build: str | None = None,
    validate: str | None = None,
    defines: Sequence[str] = (),
) -> Templates:
    """Split and check the templates. Raises ``UsageError`` for what can't be filled in."""
    templates = Templates(
        _words("--cmd-template", command),
        _words("--build", build) if build is not None else (),
        _words("--validate", validate) if validate is not None else (),
        tuple(defines) or space.parameters,
    )
    own = {PROGRAM} if build is not None else set()
    _require_known(space, "--cmd-template", templates.command, own)
    _require_known(space, "--validate", templates.validate, own)
    _require_known(space, "--build", templates.build, {_OUTPUT, _DEFINES})
    if build is not None:
        if _OUTPUT not in " ".join(templates.build):
            raise UsageError(
                "--build has no {output}, so builds of different configurations would overwrite each other",
                next_step="write the program to {output}, and start it with {program} in --cmd-template",
            )
        if PROGRAM not in " ".join(templates.command):
            raise UsageError(
                "--cmd-template has no {program}, so what --build makes is never run",
                next_step="start it with {program}",
            )
    unknown = sorted(set(defines) - set(space.parameters))
    if unknown or (defines and _DEFINES not in templates.build):
        raise UsageError(
            f"--define names {unknown[0]!r}, which is no parameter"
            if unknown
            else "--define says what {defines} in --build stands for, and it is not there",
            next_step="put {defines} into --build as a word of its own, and name parameters",
        )
    used = _placeholders((*templates.command, *templates.build))
    if _DEFINES in templates.build:
        used |= set(templates.defines)
    for position, name in enumerate(space.parameters):
        if name not in used and len(space.levels(position)) > 1:
            raise UsageError(
                f"the parameter {name!r} stands in no template, so its values would all be the same program",
                next_step=f"put {{{name}}} into --cmd-template or --build, or take it out of the space",
            )
    return templates


def _words(option: str, text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{option} can't be split into words: {error}") from None
    if not words:
        raise UsageError(f"{option} is empty")
    return words


def _placeholders(words: Iterable[str]) -> set[str]:
    return {name for word in words for name in _PLACEHOLDER.findall(word) if name}


def _require_known(space: SearchSpace, option: str, words: Sequence[str], own: set[str]) -> None:
    known = {*space.parameters, *(word.strip("{}") for word in own)}
    unknown = sorted(_placeholders(words) - known)
    if unknown:
        raise UsageError(
            f"{option} has the placeholder {{{unknown[0]}}}, which is no parameter of the space",
            next_step=f"known are {', '.join(sorted(known))}; write {{{{ for a brace",
        )


# Numbers of configurations from their code objects: registers, LDS, waves and predicted occupancy.


#: What a kernel costs; of several kernels in one file the largest counts.
_COSTS = ("vgprs", "agprs", "sgprs", "lds_bytes", "scratch_bytes", "vgpr_spills")
_WAVES, _OCCUPANCY, _UNKNOWN = "waves per workgroup", "waves per SIMD", "code unknown"


@frozen(eq=False)
class CodeRequest:
    """``files`` has the code of each configuration, ``None`` where there is none.

    ``kernel`` names one kernel, without it all count. The expressions are the work-items of a workgroup, and
    LDS that the launch adds; without the first the largest permitted workgroup is taken.
    """

    files: Sequence[Path | None]
    kernel: str | None = None
    workgroup_size: Expression | None = None
    dynamic_lds: Expression | None = None


@frozen(eq=False)
class CodeFeatures:
    """Columns by name, and one line per problem. ``unknown`` counts configurations without numbers."""

    columns: Mapping[str, tuple[float, ...]]
    unknown: int
    problems: tuple[str, ...] = ()


@attrs.define
class _Codes:
    """Launches of the kernels in each file, read once however many configurations share it."""

    request: CodeRequest
    problems: dict[str, None] = attrs.field(factory=dict)
    _kernels: dict[Path, tuple[LaunchedKernel, ...]] = attrs.field(factory=dict)

    def launches(self, space: SearchSpace, index: int) -> tuple[LaunchedKernel, ...]:
        path = self.request.files[index]
        if path is None:
            return ()
        if path not in self._kernels:
            self._kernels[path] = self._read(path)
        values = space.values(index)
        size = _whole_number("--workgroup-size", self.request.workgroup_size, values, 1)
        lds = _whole_number("--dynamic-lds", self.request.dynamic_lds, values, 0) or 0
        shape = LaunchAssumption(size, lds)
        return tuple(shape.of(one.kernel, one.architecture) for one in self._kernels[path])

    def _read(self, path: Path) -> tuple[LaunchedKernel, ...]:
        from rpl_codeobject.reading import read_code_objects

        try:
            codes = read_code_objects(path)
        except RplError as error:
            self.problems[error.one_line()] = None
            return ()
        plain = LaunchAssumption()
        launched = [plain.of(kernel, code.architecture) for code in codes for kernel in code.kernels]
        wanted = self.request.kernel
        if wanted is not None:
            launched = [one for one in launched if wanted in (one.kernel.name, one.kernel.symbol)]
        if not launched:
            self.problems[f"{path} has no kernel{'' if wanted is None else f' {wanted!r}'}"] = None
        return tuple(launched)


def _whole_number(
    option: str, expression: Expression | None, values: Mapping[str, bool | int | float | str], least: int
) -> int | None:
    if expression is None:
        return None
    value = expression.value(values)
    if isinstance(value, (int, float)) and value == int(value) and value >= least:
        return int(value)
    shown = ", ".join(f"{name}={value}" for name, value in values.items())
    raise UsageError(
        f"{option} {expression.text!r} is {value!r} for {shown}, not a whole number from {least}"
    )


def code_features(space: SearchSpace, request: CodeRequest, architecture_of: ArchitectureOf) -> CodeFeatures:
    """Columns for ``space``. What is unknown gets the median of its column, and another column says so."""
    codes = _Codes(request)
    launches = [codes.launches(space, index) for index in range(len(space))]
    distinct = dict.fromkeys(one for some in launches for one in some)
    occupancies = {one: compiled_occupancy(one, architecture_of(one.architecture)) for one in distinct}
    reasons = {answer.reason for answer in occupancies.values() if answer.waves_per_simd is None}
    rows = [_numbers(some, occupancies) for some in launches]
    unknown = sum(not row for row in rows)
    if unknown == len(rows):
        return CodeFeatures({}, unknown, tuple(codes.problems))
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _numeric_column([row.get(name) for row in rows]) for name in names}
    if unknown:
        columns[_UNKNOWN] = tuple(float(not row) for row in rows)
    problems = (*codes.problems, *(f"occupancy is unknown: {reason}" for reason in sorted(map(str, reasons))))
    return CodeFeatures(columns, unknown, problems)


def _numbers(
    launches: Sequence[LaunchedKernel], occupancies: Mapping[LaunchedKernel, CodeOccupancy]
) -> dict[str, float]:
    """What is known of one configuration: the largest cost and the lowest occupancy of its kernels."""
    numbers: dict[str, float] = {}
    for launch in launches:
        waves = occupancies[launch].waves_per_simd
        costs = {name: getattr(launch.kernel, name) for name in _COSTS}
        costs["lds_bytes"] = launch.lds_bytes
        costs[_WAVES] = math.ceil(launch.workgroup_size / launch.kernel.wavefront_size)
        for name, value in costs.items():
            if value is not None:
                numbers[name] = max(numbers.get(name, 0.0), float(value))
        if waves is not None:
            numbers[_OCCUPANCY] = min(numbers.get(_OCCUPANCY, math.inf), float(waves))
    return numbers


def _numeric_column(values: Sequence[float | None]) -> tuple[float, ...]:
    known = sorted(value for value in values if value is not None)
    middle = known[len(known) // 2]
    return tuple(middle if value is None else value for value in values)
