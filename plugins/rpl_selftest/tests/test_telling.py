"""What was refuted is named by `rpl doctor` and by documents of that device; no figure changes."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from rpl_core.errors import BadDataError
from rpl_selftest.checks import all_checks
from rpl_selftest.kept import SelftestCheck, read_kept


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return tmp_path / "settings" / "rpl" / "selftest.json"


def kept(path, *, origin="synthetic", refuted=("times", "counters-bytes"), device="mi300x"):
    entry = {
        "origin": origin,
        "date": "2026-11-26",
        "refuted": list(refuted),
        "confirmed": 9,
        "not_possible": 4,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema_version": "1.0", "devices": {device: entry}}))


def test_the_doctor_names_it_where_there_was_one(settings, rpl_cli):
    def listed():
        return json.loads(rpl_cli("doctor", "--json").stdout)

    assert "selftest" not in listed()
    kept(settings, origin="measured")
    report = SelftestCheck().check()
    assert report.status.value == "broken"
    told = "selftest of this machine: 2 refuted (times, counters-bytes), mi300x, 2026-11-26"
    assert report.fact == told
    assert listed()["selftest"]["found"] == told
    kept(settings, origin="measured", refuted=())
    assert SelftestCheck().check().status.value == "ok"
    kept(settings)
    report = SelftestCheck().check()
    assert (report.status.value, report.fact) == (
        "ok",
        f"{told}, synthetic: nothing of it was measured on hardware",
    )


def profile(rpl_cli, recording, out):
    rpl_cli("profile", "--device", "mi300x", "--from", recording, "-o", out).assert_ok()
    return json.loads((out / "profile.json").read_text())


def test_documents_of_the_device_name_it_and_figures_stay(settings, rpl_cli, rpl_make_rocpd, tmp_path):
    recording = rpl_make_rocpd([("k", 0, 1000)])
    plain = profile(rpl_cli, recording, tmp_path / "plain")
    kept(settings, origin=plain["provenance"]["origin"])
    named = profile(rpl_cli, recording, tmp_path / "named")
    (one,) = [d for d in named["diagnostics"] if d["code"] == "selftest.refuted"]
    assert one["fact"].startswith("selftest of this machine: 2 refuted (times, counters-bytes)")
    assert one["count"] == 2
    assert named["provenance"]["remarks"] == [one["fact"]]
    assert plain["provenance"]["remarks"] == []
    for document in (plain, named):
        del document["diagnostics"], document["provenance"]["remarks"]
        document["provenance"]["plugins"] = [
            p for p in document["provenance"]["plugins"] if "selftest" not in p
        ]
    assert named == plain
    for number, other in enumerate(({"device": "mi300a"}, {"origin": "modelled"}, {"refuted": ()})):
        kept(settings, **{"origin": plain["provenance"]["origin"], **other})
        told = profile(rpl_cli, recording, tmp_path / f"other-{number}")
        assert not [d for d in told["diagnostics"] if d["code"].startswith("selftest")]
        remarks = [remark.partition(",")[0] for remark in told["provenance"]["remarks"]]
        assert remarks == (["selftest of this machine: nothing refuted"] if "refuted" in other else [])


def test_every_document_and_the_page_name_it(settings, rpl_cli, rpl_make_rocpd, tmp_path):
    kept(settings)
    out = tmp_path / "run"
    profile(rpl_cli, rpl_make_rocpd([("k", 0, 1000)]), out)
    for name in ("profile", "roofline", "dag", "analysis"):
        (remark,) = json.loads((out / f"{name}.json").read_text())["provenance"]["remarks"]
        assert remark.startswith("selftest of this machine: 2 refuted (times, counters-bytes), mi300x")
    rpl_cli("report", out, "--format", "html", "-o", tmp_path / "page.html").assert_ok()
    assert remark in (tmp_path / "page.html").read_text()


def test_the_schema_of_its_document_is_printed(rpl_cli):
    schema = rpl_cli("schema", "selftest").assert_ok().json()
    assert set(schema["required"]) >= {"verdict", "lines", "origin", "device"}


def test_a_broken_file_is_told_and_breaks_nothing(settings, rpl_cli, rpl_make_rocpd, tmp_path):
    settings.parent.mkdir(parents=True)
    settings.write_text('{"devices": {"mi300x": 3}}')
    with pytest.raises(BadDataError, match="can't be read"):
        read_kept()
    told = profile(rpl_cli, rpl_make_rocpd([("k", 0, 1000)]), tmp_path / "run")
    assert [d["code"] for d in told["diagnostics"] if d["code"].startswith("selftest")] == [
        "selftest.unreadable"
    ]


def test_every_check_states_what_it_expects_and_cites_a_page():
    checks = all_checks()
    assert len({check.name for check in checks}) == len(checks)
    for check in checks:
        assert all(attrs.asdict(check, recurse=False)[field] for field in ("runs", "expectation", "document"))
        assert (Path(__file__).parents[3] / check.document).is_file(), check.document
