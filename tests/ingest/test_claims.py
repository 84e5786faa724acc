"""Which reader gets which file, and what happens to files that nobody can read."""

from __future__ import annotations

import pytest

from rpl_core.errors import BadDataError, ForeignFileError, MissingError, PluginError
from rpl_core.ingest.claims import claim_files, require_readable


@pytest.fixture
def files(tmp_path):
    """``files("a.x", "b.y")``: these files, made."""

    def make(*names):
        for name in names:
            (tmp_path / name).write_text("12345")
        return tuple(tmp_path / name for name in names)

    return make


def check(claims, named, *, has_readers=True):
    require_readable(claims, named, has_readers=has_readers)


def test_higher_priority_wins_and_leaves_the_rest(files, suffix_reader):
    paths = files("a.x", "b.yx")
    special, general = suffix_reader("special", ".yx", priority=5), suffix_reader("general", "x")
    claims = claim_files(paths, [general, special])
    taken = {claim.inputs.paths[0].name: claim.reader.name for claim in claims.readable}
    assert taken == {"a.x": "general", "b.yx": "special"}


def test_file_that_nobody_knows_inside_a_folder_is_passed_over(files, suffix_reader, tmp_path):
    claims = claim_files(files("a.x", "notes.txt"), [suffix_reader("a", ".x")])
    assert [path.name for path in claims.unknown] == ["notes.txt"]
    check(claims, [tmp_path])


def test_file_that_the_user_named_must_be_known(files, suffix_reader):
    paths = files("a.x", "notes.txt")
    with pytest.raises(BadDataError, match=r"notes\.txt is not a recording"):
        check(claim_files(paths, [suffix_reader("a", ".x")]), paths)


def test_refusal_inside_a_folder_with_other_recordings_is_passed_over(files, suffix_reader, tmp_path):
    readers = [suffix_reader("a", ".x"), suffix_reader("old", ".old", refusal="too old")]
    check(claim_files(files("a.x", "b.old"), readers), [tmp_path])


def test_refusal_of_the_only_recording_is_the_message(files, suffix_reader, tmp_path):
    claims = claim_files(files("b.old"), [suffix_reader("old", ".old", refusal="too old")])
    with pytest.raises(ForeignFileError, match=r"b\.old: too old"):
        check(claims, [tmp_path])


def test_of_refusals_the_first_of_each_file_that_nobody_reads_counts(files, suffix_reader):
    old = [suffix_reader(name, ".x", priority=5, refusal=name) for name in ("old", "older")]
    assert [one.refusal for one in claim_files(files("a.x"), old).refused] == ["old"]
    assert claim_files(files("a.x"), [*old, suffix_reader("a", ".x")]).refused == ()


def test_refusal_of_a_named_file_is_the_message(files, suffix_reader):
    paths = files("a.x", "b.old")
    readers = [suffix_reader("a", ".x"), suffix_reader("old", ".old", refusal="too old")]
    with pytest.raises(ForeignFileError, match="too old"):
        check(claim_files(paths, readers), paths)


def test_empty_folder_holds_no_recording(suffix_reader, tmp_path):
    with pytest.raises(BadDataError, match="holds no recording"):
        check(claim_files((), [suffix_reader("a", ".x")]), [tmp_path])


def test_without_readers_the_remedy_is_to_install_one(files, tmp_path):
    for named in (files("a.x"), [tmp_path]):
        with pytest.raises(MissingError) as caught:
            check(claim_files(files("a.x"), []), named, has_readers=False)
        assert "pip install rpl-rocprofv3" in str(caught.value.next_step)


def test_reader_that_breaks_while_looking_costs_only_itself(files, suffix_reader, broken_reader):
    claims = claim_files(files("a.x"), [suffix_reader("a", ".x"), broken_reader("claim")])
    assert [claim.reader.name for claim in claims.readable] == ["a"]
    (diagnostic,) = claims.diagnostics
    assert "plugin-broken" in diagnostic.fact
    assert "ZeroDivisionError: bad luck" in diagnostic.fact


def test_reader_that_breaks_while_reading_is_named(files, broken_reader, capsys):
    (claim,) = claim_files(files("a.x"), [broken_reader("read")]).readable
    with pytest.raises(PluginError, match="plugin-broken") as caught:
        claim.read()
    assert "--disable-plugin plugin-broken" in str(caught.value.next_step)
    assert capsys.readouterr().out == ""


def test_file_that_only_the_broken_reader_would_know_names_that_reader(files, broken_reader):
    paths = files("a.x")
    with pytest.raises(BadDataError) as caught:
        check(claim_files(paths, [broken_reader("claim")]), paths)
    assert "plugin-broken" in str(caught.value.cause)


def test_folder_of_documents_only_says_so(suffix_reader, tmp_path):
    (tmp_path / "profile.json").write_text("{}")
    with pytest.raises(BadDataError, match="documents of an analysis"):
        check(claim_files((), [suffix_reader("a", ".x")]), [tmp_path])
