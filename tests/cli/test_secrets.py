"""Secrets in a command line are masked where they are written, and the run says it needs them again."""

from __future__ import annotations

import json
import sys

import pytest

from rpl_core.text.secrets import MASK, is_masked, masked_text, masked_words

SECRET = "s3cr3t-value"


@pytest.mark.parametrize(
    "words",
    [
        ("./app", f"--token={SECRET}"),
        ("./app", "--token", SECRET),
        ("./app", "--hf-token", SECRET, "100"),
        ("./app", "--password", SECRET),
        ("./app", f"--db.password={SECRET}"),
        ("./app", f"-password={SECRET}"),
        ("./app", f"--api-key={SECRET} with more"),
        ("./app", f"--apikey={SECRET};{SECRET}"),
        ("env", f"HF_TOKEN={SECRET}", "./app"),
        ("env", f"AWS_SECRET_ACCESS_KEY={SECRET}", "./app"),
        ("sh", "-c", f"TOKEN={SECRET} ./app --password {SECRET} 'x'"),
        ("sh", "-c", f'export API_KEY="{SECRET} {SECRET}"; ./app'),
        ("curl", "-H", f"Authorization: Bearer {SECRET}", "x"),
        ("./app", f"https://me:{SECRET}@host/x"),
        ("./app", "--", "--secret", SECRET),
    ],
)
def test_a_secret_is_masked_and_nothing_else(words):
    masked = masked_words(words)
    assert SECRET not in " ".join(masked)
    assert len(masked) == len(words)
    assert is_masked(masked)
    assert masked_words(masked) == masked  # what was masked stays as it is
    assert masked[0] == words[0]


@pytest.mark.parametrize(
    "words",
    [
        ("./app", "100", "--size=5", "--verbose"),
        ("llm", "--max-tokens", "128", "--num-tokens=5", "--tokenizer", "bpe", "--pad-token", "<s>"),
        ("llm", "--eos-token=2", "--tokens", "7", "--max-token=9"),
        ("./app", "--token", "--verbose"),  # a switch
        ("./app", "--key", "5", "KEY=3", "--monkey=banana", "--keyboard=us", "--passes=3"),
        ("./app", "--secretary=x", "https://host:80/x", "a=b", "basic course"),
        (),
    ],
)
def test_other_words_stay_as_they_are(words):
    assert masked_words(words) == words


def test_a_command_in_one_text_is_masked_too():
    assert masked_text(f"make TOKEN={SECRET} -j2 && ./x --password {SECRET}") == (
        f"make TOKEN={MASK} -j2 && ./x --password {MASK}"
    )


@pytest.mark.parametrize("keep", [False, True])
def test_a_profiled_run_holds_no_secret_unless_it_is_wanted(rpl_cli, tmp_path, keep):
    """The application gets it all the same."""
    seen, out = tmp_path / "seen", tmp_path / "run"
    program = f"import sys; open({str(seen)!r}, 'w').write(' '.join(sys.argv[1:]))"
    words = ("--collector", "timing-only", "--runs", "1", "-o", out, *(["--keep-command"] if keep else []))
    application = (sys.executable, "-c", program, f"--token={SECRET}", "--password", SECRET)
    rpl_cli("profile", *words, "--", *application).assert_ok()
    assert seen.read_text() == f"--token={SECRET} --password {SECRET}"
    files = [path for path in out.rglob("*") if path.is_file()]
    holding = {path.name for path in files if SECRET in path.read_text(errors="replace")}
    assert ("run.json" in holding) is keep
    assert keep or not holding
    manifest = json.loads((out / "run.json").read_text())
    assert (f"--token={MASK}" in manifest["command"]) is not keep
    report = rpl_cli("report", out, "--format", "html").assert_ok().stdout
    assert (SECRET in report) is keep
