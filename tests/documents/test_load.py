"""Documents come back from disk checked: version, schema, size."""

from __future__ import annotations

import json

import pytest

from rpl_analysis.contracts.analysis import AnalysisDocument
from rpl_analysis.contracts.dag import DagDocument
from rpl_analysis.contracts.profile import (
    GpuPart,
    KernelPart,
    OccupancyPart,
    ProfileDocument,
    ResourcesPart,
    StabilityPart,
)
from rpl_analysis.contracts.roofline import RooflineDocument
from rpl_analysis.documents import AnalysisKind, DagKind, ProfileKind, RooflineKind
from rpl_analysis.documents import load as loading
from rpl_analysis.documents.load import load_document, load_documents
from rpl_core.documents import Documents
from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.interfaces.document import DocumentContract
from rpl_core.plugins.host import Contribution

KINDS = (ProfileKind(), RooflineKind(), DagKind(), AnalysisKind())
OFFERED = tuple(Contribution("analysis", kind) for kind in KINDS)


def load(folder, name):
    return load_document(folder, next(kind for kind in KINDS if kind.name == name))


@pytest.fixture
def documents():
    models = {
        "profile": ProfileDocument(
            schema_version="1.0",
            kernel=KernelPart(name="kernel"),
            gpu=GpuPart(),
            runtime_ms=0.25,
            stability=StabilityPart(runs=1),
            resources=ResourcesPart(),
            occupancy=OccupancyPart(),
            roofline=None,
        ),
        "roofline": RooflineDocument(schema_version="1.0", status="not_collected"),
        "dag": DagDocument(schema_version="1.0", status="unavailable", reason="none"),
        "analysis": AnalysisDocument(schema_version="1.0"),
    }
    return Documents(KINDS, {name: model.model_dump() for name, model in models.items()})


@pytest.fixture
def folder(tmp_path, documents):
    documents.write(tmp_path / "run")
    return tmp_path / "run"


def change(folder, name, **members):
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


def test_what_was_written_comes_back(folder, documents):
    assert load_documents(folder, OFFERED).by_name() == documents.by_name()


def test_writing_twice_gives_the_same_bytes(folder, documents):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    documents.write(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert sorted(before) == ["analysis.json", "dag.json", "profile.json", "roofline.json"]


def test_newer_minor_version_is_read(folder):
    change(folder, "profile", schema_version="1.7")
    assert load(folder, "profile").schema_version == "1.7"


@pytest.mark.parametrize("version", ["2.0", "0.9", "", None, 1, "1"])
def test_unknown_version_is_refused(folder, version):
    change(folder, "profile", schema_version=version)
    with pytest.raises(BadDataError, match="schema"):
        load(folder, "profile")


@pytest.mark.parametrize(
    ("state", "cause", "next_step"),
    [
        (None, "it is empty", "record a run with `rpl profile -o {} -- ./app`"),
        (
            "notes.txt",
            "it is no run directory",
            "run `rpl analyze {}` if recordings lie there, else `rpl profile`",
        ),
        ("planned", "the run was stopped before its first pass ended", "profile again"),
        ("complete", "the run was interrupted before its analysis", "run `rpl analyze {}`"),
        ("damaged", "its run.json is damaged, or of another version", "`rpl analyze {}` says more"),
    ],
)
def test_missing_document_names_a_next_step_that_can_work(tmp_path, state, cause, next_step):
    if state == "notes.txt":
        (tmp_path / state).touch()
    elif state is not None:
        one = {"name": "run_1", "role": "timing", "state": state, "directory": "run_1", "command": ["./app"]}
        manifest = {"tool_version": "1", "state": "running", "created_utc": "", "collector": "none"}
        (tmp_path / "run.json").write_text(json.dumps({**manifest, "command": ["./app"], "passes": [one]}))
    with pytest.raises(MissingError, match=r"holds no profile\.json") as caught:
        load(tmp_path, "profile")
    assert (caught.value.cause, caught.value.next_step) == (cause, next_step.format(tmp_path))


def test_what_is_no_run_is_called_what_it_is(tmp_path):
    with pytest.raises(MissingError, match="there is no run at") as absent:
        load(tmp_path / "absent", "profile")
    assert "analyze" not in absent.value.next_step


def test_a_directory_with_another_known_file_is_called_what_it_is(tmp_path):
    class Session(DocumentContract):
        name, summary = "session", "a session"

        def model(self):
            raise NotImplementedError

        def found_in(self, directory):
            return f"look at {directory}"

    (tmp_path / "session.json").touch()
    with pytest.raises(MissingError, match="holds a session, not a run") as caught:
        load_documents(tmp_path, (*OFFERED, Contribution("sessions", Session())))
    assert caught.value.next_step == f"look at {tmp_path}"


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"schema_version": "1.0"}', b"1" * 5000),
        b'{"schema_version": "1.0", "status": "unavailable", "reason": "\\udcff"}',
    ],
    ids=["empty", "cut", "list", "null", "no text", "deep", "without members", "huge number", "half a pair"],
)
def test_damaged_document_is_bad_data(folder, content):
    (folder / "dag.json").write_bytes(content)
    with pytest.raises(BadDataError):
        load(folder, "dag")


@pytest.mark.parametrize("value", ["fast", -0.5, 1.5])
def test_value_outside_of_the_schema_is_refused(folder, value):
    change(folder, "profile", headroom_fraction=value)
    with pytest.raises(BadDataError, match="headroom_fraction"):
        load(folder, "profile")


def test_nan_is_refused(folder):
    path = folder / "profile.json"
    path.write_text(path.read_text().replace("0.25", "NaN"))
    with pytest.raises(BadDataError, match="runtime_ms"):
        load(folder, "profile")


def test_file_that_is_too_large_is_not_read(folder, monkeypatch):
    monkeypatch.setattr("rpl_analysis.documents.load._MAX_DOCUMENT_BYTES", 10)
    with pytest.raises(BadDataError, match="larger than"):
        load(folder, "profile")


def test_a_place_that_can_not_be_written_is_a_usage_error(documents, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        documents.write(tmp_path / "file")


def test_report_of_an_unknown_major_version_is_65(folder, rpl_cli):
    change(folder, "roofline", schema_version="2.0")
    outcome = rpl_cli("report", folder).assert_exit(65)
    assert "roofline.json has schema version '2.0'; this rpl reads 1.x" in outcome.stderr


def test_countless_mistakes_are_not_told_one_by_one(folder, monkeypatch):
    """Gigabytes where each of them is kept."""
    monkeypatch.setattr(loading, "_LARGE_BYTES", 0)
    assert load(folder, "profile").launches == load_document(folder, ProfileKind()).launches
    path = folder / "profile.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"kernels": [0] * 1000}))
    with pytest.raises(BadDataError, match=r"schema: kernels\.0") as refused:
        load(folder, "profile")
    assert refused.value.__context__.error_count() == 1
