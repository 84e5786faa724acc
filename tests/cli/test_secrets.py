"""Secrets in a command line are masked where they are written, and the run says it needs them again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rpl_core.text import MASK, is_masked, masked_text, masked_words

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
        ("hipcc", f"-DAPI_KEY={SECRET}", "k.hip"),
        ("curl", "-H", f"X-Api-Key: {SECRET}", "x"),
        ("./app", f'{{"size": 3, "token": "{SECRET}"}}'),
        ("./app", f'{{"password":"{SECRET} {SECRET}"}}'),
        ("sh", "-c", f"./app '--token={SECRET} {SECRET}' 3"),
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
        ("./app", "-DKEY=3", "-Dtokens=5", '{"max_token": 5}', "-v", "token:/x"),
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


PROFILES = {
    "timing only": ("--collector", "timing-only"),
    "counters": ("--roofline",),
}
LINE = (
    f"--token={SECRET}",
    "--password",
    SECRET,
    f"https://me:{SECRET}@host/x",
    f'{{"api_key": "{SECRET}"}}',
)


def holding(folder: Path, secret: str = SECRET) -> set[str]:
    """The files below the folder with the secret in their bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in files if secret.encode() in path.read_bytes()}


@pytest.mark.parametrize("options", PROFILES.values(), ids=PROFILES)
def test_no_file_of_a_profile_holds_a_secret(rpl_cli, rpl_standin_rocprofv3, tmp_path, options):
    """Nor what is made of it; the profiler writes and prints the command line, and the program its words."""
    echo = "import sys; print(*sys.argv)"
    usual = ("--runs", "1", "--device", "MI300X", *options)
    done = rpl_cli("profile", *usual, "-o", tmp_path / "run", "--", sys.executable, "-c", echo, *LINE)
    done.assert_ok()
    assert SECRET not in done.stdout + done.stderr
    assert MASK in "".join(path.read_text() for path in (tmp_path / "run").rglob("*.log"))
    if options[:1] != ("--collector",):
        for form in ("perfetto", "csv", "speedscope", "graphml"):
            rpl_cli("export", "--format", form, tmp_path / "run", "-o", tmp_path / form).assert_ok()
    for form in ("text", "json", "html", "csv", "sarif"):
        rpl_cli("report", tmp_path / "run", "--format", form, "-o", tmp_path / f"of.{form}").assert_ok()
    told = ("--html", tmp_path / "c.html", "--junit", tmp_path / "c.xml", "-o", tmp_path / "compared")
    compared = rpl_cli("compare", tmp_path / "run", tmp_path / "run", *told, "--json")
    assert SECRET not in compared.stdout + compared.stderr
    assert holding(tmp_path) == set()


def test_what_another_tool_recorded_is_shown_without_its_secrets(rpl_cli, rpl_make_rocpd, tmp_path):
    line = f"./app --token={SECRET} --password {SECRET} https://me:{SECRET}@host/x"
    recording = rpl_make_rocpd([("k", 0, 1000), ("k", 2000, 3300)], command=line)
    made = tmp_path / "made"
    rpl_cli("analyze", recording, "-o", made / "run", "--device", "gfx942").assert_ok()
    rpl_cli("report", made / "run", "--format", "html", "-o", made / "page.html").assert_ok()
    rpl_cli("export", "--format", "perfetto", recording, "-o", made / "trace").assert_ok()
    assert "./app" in (made / "page.html").read_text()
    assert holding(made) == set()


def test_measured_pairs_hold_no_secret(rpl_cli, tmp_path):
    program = f"{sys.executable} -c 'import sys; print(sys.argv)'"
    sides = ("--base", f"{program} --token={SECRET}", "--new", f"{program} --password {SECRET}")
    usual = ("--no-rocprof", "--pairs", "8", "-o", tmp_path / "out", "--html", tmp_path / "page.html")
    done = rpl_cli("compare", "--interleaved", *sides, *usual, "--json")
    assert done.exit_code in (0, 1, 75), done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert (tmp_path / "page.html").exists()
    assert holding(tmp_path) == set()


def test_a_long_text_is_masked_in_time_that_grows_with_it():
    """Each of them took a text of some thousand letters minutes, were it looked at from every place."""
    for part in ("a", "a-", "--", "bearer ", "--token ", "'token=", "a://b:", "a:", "token", '"token":'):
        masked_text(part * (200_000 // len(part)))
