"""Read the documents of a run directory back; they may come from anywhere, so they are checked."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator, from_json

from rpl_analysis.documents import AnalysisKind, DagKind, ProfileKind, RooflineKind
from rpl_analysis.text import shown_names
from rpl_core.contracts import SCHEMA_MAJOR
from rpl_core.documents import Documents, kinds_of, sections_of
from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.files import read_regular
from rpl_core.interfaces.document import DocumentContract
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.run_directory import is_run_directory, load_manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.contracts.analysis import AnalysisDocument
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_analysis.contracts.profile import KernelProfile, ProfileDocument
    from rpl_analysis.contracts.roofline import RooflineDocument
    from rpl_core.plugins.host import Contribution

_MAX_DOCUMENT_BYTES = 256 << 20
#: From here on a list of nothing but mistakes would take gigabytes to tell them all.
_LARGE_BYTES = 1 << 20


def load_documents(directory: Path, contributions: Sequence[Contribution[Any]]) -> Documents:
    """The documents of a run that the installed plugins know.

    Raises ``MissingError`` without them, ``BadDataError`` for broken ones.
    """
    known = kinds_of(contributions)
    owner = next((kind.plugin for kind in known if kind.value.leading), None)
    # Those of other plugins may be younger than the run.
    there = [kind for kind in known if (directory / f"{kind.value.name}.json").is_file()]
    kinds = [kind.value for kind in known if owner in (None, kind.plugin) or kind in there]
    if not known:
        raise MissingError(
            "no installed plugin knows documents", next_step="pip install rocm-perf-lab, which brings them"
        )
    contents = {}
    for kind in kinds:
        model = load_document(directory, kind, (c.value for c in contributions))
        contents[kind.name] = model.model_dump(mode="python")
    for section in sections_of(contributions):
        content = contents.get(section.value.document, {}).get(section.value.field)
        if isinstance(content, Mapping):
            _validated(section.value.model(), content, directory / f"{section.value.document}.json")
    return Documents(kinds, contents)


def load_document(directory: Path, contract: DocumentContract, known: Iterable[Any] = ()) -> BaseModel:
    """One document. ``known`` are contributions that may say what else the directory is."""
    path = directory / f"{contract.name}.json"
    if not path.is_file():
        raise _missing(directory, contract.name, known)
    _refuse_half_written(directory)
    read = read_regular(path, _MAX_DOCUMENT_BYTES)
    try:
        content = from_json(read)  # refuses halves of surrogate pairs, which nothing could write
    except ValueError as error:
        raise BadDataError(f"{path} is not valid JSON: {error}", next_step="analyse the run again") from None
    _require_known_version(path, content)
    if len(read) > _LARGE_BYTES:
        return _validated(_FirstMistake(contract.model()), content, path)
    return _validated(contract.model(), content, path)


class _FirstMistake:
    """A model that stops at the first mistake of each list, which is no setting of models."""

    def __init__(self, model: type[BaseModel]) -> None:
        schema = _failing_fast(model.__pydantic_core_schema__)
        try:
            self._validator = SchemaValidator(schema, _use_prebuilt=False)
        except TypeError:  # before pydantic 2.11 there are no others than the one that is asked for
            self._validator = SchemaValidator(schema)

    def model_validate(self, content: object) -> BaseModel:
        document: BaseModel = self._validator.validate_python(content)
        return document


def _failing_fast(schema: Any) -> Any:
    """A copy of a schema of ``pydantic_core``."""
    if isinstance(schema, list):
        return [_failing_fast(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    copied = {key: _failing_fast(part) for key, part in schema.items()}
    return copied | {"fail_fast": True} if schema.get("type") in ("list", "tuple") else copied


def _validated(model: type[BaseModel] | _FirstMistake, content: object, path: Path) -> BaseModel:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadDataError(
            f"{path} does not follow its schema: {place}: {first['msg']}", next_step="analyse the run again"
        ) from None


def _missing(directory: Path, name: str, known: Iterable[Any]) -> MissingError:
    if not directory.is_dir():
        return MissingError(
            f"there is no run at {directory}", next_step="name another one, or record one with `rpl profile`"
        )
    for contract in known:
        if isinstance(contract, DocumentContract) and (directory / f"{contract.name}.json").is_file():
            with plugin_boundary(type(contract).__module__, f"the document {contract.name!r}"):
                advice = contract.found_in(directory)
            if advice is not None:
                return MissingError(f"{directory} holds {contract.summary}, not a run", next_step=advice)
    cause, next_step = _why_unanalysed(directory)
    return MissingError(f"{directory} holds no {name}.json", cause=cause, next_step=next_step)


def _why_unanalysed(directory: Path) -> tuple[str, str]:
    """Cause and next step for a folder without documents; `rpl analyze` only where it may find something."""
    quoted = shlex.quote(str(directory))
    analyze = f"rpl analyze {quoted}"
    if not any(directory.iterdir()):
        return "it is empty", f"record a run with `rpl profile -o {quoted} -- ./app`"
    if not is_run_directory(directory):
        return "it is no run directory", f"run `{analyze}` if recordings lie there, else `rpl profile`"
    try:
        manifest = load_manifest(directory)
    except BadDataError:
        return "its run.json is damaged, or of another version", f"`{analyze}` says more"
    if manifest.recordings or any(entry.state == "complete" for entry in manifest.passes):
        return "the run was interrupted before its analysis", f"run `{analyze}`"
    return manifest.reason or "the run was stopped before its first pass ended", "profile again"


def _refuse_half_written(directory: Path) -> None:
    """Some documents may be those of an earlier analysis: together they would contradict each other."""
    if not is_run_directory(directory):
        return
    with suppress(BadDataError):  # what needs the manifest says so
        if load_manifest(directory).state == "recorded":
            raise MissingError(
                f"the documents of {directory} are not all written",
                cause="rpl was killed while it wrote them",
                next_step=f"run `rpl analyze {shlex.quote(str(directory))}`",
            )


def _require_known_version(path: Path, content: object) -> None:
    version = content.get("schema_version") if isinstance(content, dict) else None
    if not isinstance(version, str) or version.split(".")[0] != SCHEMA_MAJOR:
        raise BadDataError(
            f"{path} has schema version {version!r}; this rpl reads {SCHEMA_MAJOR}.x",
            next_step="use the rpl that wrote it, or analyse the run again",
        )


# Which range of the application a run was analysed for, so that what is made from it speaks of the same.


def chosen_range(paths: Sequence[Path], asked: str | None = None) -> str | None:
    """The range that was ``asked`` for; else the one that the runs at ``paths`` were analysed for.

    ``None`` means all work. Raises ``UsageError`` where they were analysed for different ones.
    """
    if asked is not None:
        return asked or None
    names = {_analysed_range(path): path for path in paths}
    if len(names) > 1:
        whose = " and ".join(
            f"{path} for {'all work' if name is None else f'the range {name[:60]!r}'}"
            for name, path in list(names.items())[:2]
        )
        raise UsageError(
            f"the runs were analysed for different work: {whose}",
            next_step="say --range NAME for all of them, or --range '' for all work",
        )
    return next(iter(names), None)


def _analysed_range(path: Path) -> str | None:
    """What the documents of a run speak of; without them, what it was recorded with."""
    if not is_run_directory(path):
        return None
    if (path / f"{DagKind.name}.json").is_file():
        name = getattr(load_document(path, DagKind()), "range", None)
    else:
        name = load_manifest(path).options.get("range")
    return name if isinstance(name, str) and name else None


# A run for notebooks: documents as objects, kernels and dispatches as columns.

_OF_KERNEL = ("launches", "time_share", "runtime_ms", "mean_ns", "median_ns", "min_ns", "max_ns")


class LoadedRun:
    """What ``rpl_analysis.load`` gives. Documents are read when they are looked at, and checked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        _ = self.profile  # says at once where there is no run

    @cached_property
    def profile(self) -> ProfileDocument:
        return cast("ProfileDocument", load_document(self.directory, ProfileKind()))

    @cached_property
    def roofline(self) -> RooflineDocument:
        return cast("RooflineDocument", load_document(self.directory, RooflineKind()))

    @cached_property
    def dag(self) -> DagDocument:
        return cast("DagDocument", load_document(self.directory, DagKind()))

    @cached_property
    def analysis(self) -> AnalysisDocument:
        return cast("AnalysisDocument", load_document(self.directory, AnalysisKind()))

    def kernels(self) -> Mapping[str, NDArray[Any]]:
        """A row per kernel in the order of the document; unknown figures are NaN.

        ``name`` is the short name of the reports, ``recorded_name`` the one to join other documents by.
        """
        kernels = self.profile.kernels
        shown = shown_names(kernel.name for kernel in kernels)
        columns: dict[str, NDArray[Any]] = {
            "name": np.array([shown[kernel.name] for kernel in kernels], dtype=object),
            "recorded_name": np.array([kernel.name for kernel in kernels], dtype=object),
            "bottleneck": np.array([kernel.bottleneck for kernel in kernels], dtype=object),
        }
        columns |= {field: _figures([getattr(k, field) for k in kernels]) for field in _OF_KERNEL}
        figures = [_figures_of(kernel) for kernel in kernels]
        names = _figures_of(kernels[0]) if kernels else {}
        return columns | {name: _figures([row[name] for row in figures]) for name in names}

    def dispatches(self, run: int = 0) -> Mapping[str, NDArray[Any]]:
        """A row per dispatch of a timing run, as recorded; needs a run directory with its recording.

        Of a run that was analysed with ``--range`` only what the documents speak of.
        """
        from rpl_analysis.phases import restricted
        from rpl_core.cli.session import Session
        from rpl_core.ingest import load_recording

        recording = load_recording([self.directory], Session().host.catalog.readers().contributions)
        runs = restricted(recording, self.profile.range).timing_runs
        if not 0 <= run < len(runs):
            raise UsageError(f"there is no timing run {run}: the recording has {len(runs)}, counted from 0")
        trace = runs[run]
        names = np.array([kernel.name for kernel in trace.kernels], dtype=object)
        rows = trace.dispatches
        columns = {field: getattr(rows, field) for field in ("agent", "stream", "begin_ns", "end_ns")}
        return {"kernel": names[rows.kernel], **columns, "duration_ns": rows.duration_ns()}


def _figures_of(kernel: KernelProfile) -> dict[str, float | None]:
    roofline = kernel.roofline
    return {
        "occupancy": kernel.occupancy.theoretical,
        "criticality_weight": kernel.criticality_weight,
        "slack_ns": kernel.slack_ns,
        "operational_intensity": roofline.operational_intensity if roofline else None,
        "achieved_gflops": roofline.achieved_gflops if roofline else None,
        "achieved_gbps": roofline.achieved_gbps if roofline else None,
    }


def _figures(values: list[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
