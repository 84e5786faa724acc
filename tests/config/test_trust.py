"""Whose settings files may name programs, endpoints and plugins: the user's, root's, and trusted ones."""

from __future__ import annotations

import ast
import json
import os
import re
import struct
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from rpl_core import config
from rpl_core.config import SETTINGS, load_configuration
from rpl_core.interfaces.options import PluginSetting, SettingKind
from rpl_core.plugins.discovery import PluginSelection
from rpl_core.plugins.host import create_host

ROOT = Path(__file__).parents[2]
STRANGER = 1_234_567

#: One setting of every kind that may not come from somebody else, with a value that would be seen.
NAMING = {
    "collector": '"timing-only"',
    "runs-directory": '"/evil/place"',
    "native-folder": '"/evil/build"',
    "replay-launcher": '"/evil/launcher"',
    "plugins.disabled": '["report"]',
    "plugins.rocprofv3.executable": '"/evil/rocprofv3"',
    "plugins.att.library-path": '"/evil/lib"',
    "plugins.llm-unroll.llm-client": '"evil"',
    "plugins.llm-unroll.base-url": '"http://evil.example/v1"',
    "plugins.optimize.keep-variables": '["EVIL_TOKEN"]',
    "plugins.nobody-knows.this": '"/evil/anything"',
}
HARMLESS = {
    "runs": "7",
    "deep-top": "5",
    "plugins.att.buffer-bytes": "4194304",
    "plugins.llm-unroll.temperature": "0.5",
    "plugins.transforms.distinct-pointers": '["k"]',
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SUDO_UID", raising=False)


@pytest.fixture
def as_root():
    if os.geteuid() != 0:
        pytest.skip("only root gives files to a group that is not theirs")


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "shared" / "project" / "inner"
    folder.mkdir(parents=True)
    return folder


def written(folder, name="rpl.toml", **more):
    """A settings file that sets everything, as ``rpl.toml`` or in ``pyproject.toml``."""
    lines = [f"{key} = {value}" for key, value in {**NAMING, **HARMLESS, **more}.items()]
    path = folder / name
    if name == "pyproject.toml":
        lines = [f"tool.rpl.{line}" for line in lines]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def somebody_else(monkeypatch):
    """Seen from another user all files here are a stranger's."""
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)


@pytest.fixture
def host_of(monkeypatch):
    def make(folder):
        found = load_configuration(start=folder)
        host = create_host(PluginSelection(), config=found.plugin_view(), doubtful=found.doubtful())
        return found.with_kinds(host.catalog.options(), host.settings), host

    return make


def effective(configuration, host):
    """What counts, of all that the file sets: by the core, by options, and as plugins see it."""
    known = {setting.name for setting in configuration.settings}
    seen = {name: host.relay.config.get(name) for name in configuration.file_values}
    told = {name: configuration.resolve(name).origin for name in seen if name in known}
    return {n for n, v in seen.items() if told.get(n, "file" if v is not None else "").startswith("file")}


@pytest.mark.parametrize("name", ["rpl.toml", "pyproject.toml"])
def test_a_file_of_ones_own_counts_whole(place, host_of, name):
    written(place.parent, name)
    assert effective(*host_of(place)) == {*NAMING, *HARMLESS}


@pytest.mark.parametrize("name", ["rpl.toml", "pyproject.toml"])
def test_of_a_strangers_file_only_what_names_nothing_counts(place, host_of, somebody_else, name):
    if os.getuid() == 0:
        os.chown(written(place.parent, name), STRANGER + 1, -1)
    else:
        written(place.parent, name)
    configuration, host = host_of(place)
    assert effective(configuration, host) == set(HARMLESS)
    assert set(configuration.ignored()) == set(NAMING)
    assert not [value for value in host.relay.config.values() if "evil" in str(value).lower()]
    assert configuration.value("plugins.disabled") == ()


def _everybody(path):
    path.chmod(0o777)


def _everybody_but_sticky(path):
    path.chmod(0o1777)


@pytest.mark.parametrize("level", ["file", "folder", "above", "further above"])
@pytest.mark.parametrize(("change", "trusted"), [(_everybody, False), (_everybody_but_sticky, True)])
def test_a_folder_that_everybody_may_write_makes_a_file_anybodys(place, tmp_path, level, change, trusted):
    file = written(place.parent)
    folders = {"folder": place.parent, "above": place.parent.parent, "further above": tmp_path}
    if level == "file":
        file.chmod(0o666)
        trusted = False
    else:
        change(folders[level])
    try:
        assert (load_configuration(start=place).distrust is None) is trusted
    finally:
        for folder in folders.values():
            folder.chmod(0o755)


GROUP = 7_654_321


@pytest.mark.parametrize(
    ("level", "mode", "gid", "trusted"),
    [
        ("project", 0o775, GROUP, False),
        ("project/inner", 0o775, GROUP, False),
        ("project/inner/rpl.toml", 0o664, GROUP, False),
        ("project/inner", 0o755, GROUP, True),
        ("project/inner/rpl.toml", 0o640, GROUP, True),
        ("project", 0o1775, GROUP, True),  # sticky: who did not make a file can't replace it
        ("project/inner/rpl.toml", 0o664, 0, True),  # root's group may write what is root's anyway
    ],
)
def test_what_a_group_may_write_is_the_groups(place, tmp_path, as_root, level, mode, gid, trusted):
    path = written(place)
    changed = tmp_path / "shared" / level
    os.chown(changed, -1, gid)
    changed.chmod(mode)
    distrust = load_configuration(start=place).distrust
    assert (distrust is None) is trusted
    if not trusted:
        assert f"can be written by a group (gid {GROUP})" in distrust
    assert path.exists()


@pytest.mark.parametrize(
    ("name", "members", "trusted"),
    [("me", [], True), ("me", ["me"], True), ("me", ["me", "other"], False), ("team", [], False)],
)
def test_a_group_of_ones_own_is_oneself(place, as_root, monkeypatch, name, members, trusted):
    """As systems with a group for each user have it: files are made for the group to write."""
    path = written(place)
    os.chown(path, 0, GROUP)
    path.chmod(0o664)
    monkeypatch.setattr(config.pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="me", pw_gid=GROUP))
    group = SimpleNamespace(gr_name=name, gr_mem=members, gr_gid=GROUP)
    monkeypatch.setattr(config.grp, "getgrgid", lambda _: group)
    assert (load_configuration(start=place).distrust is None) is trusted


def _access_list(*entries: tuple[int, int, int]) -> bytes:
    """Tag, permissions and id of each entry, as Linux keeps them in ``system.posix_acl_access``."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.mark.parametrize(("mask", "trusted"), [(6, False), (4, True)])
def test_whom_an_access_list_names_is_seen(place, mask, trusted):
    """Somebody is named who may write; the mask decides whether they can."""
    path = written(place)
    path.chmod(0o644)
    none = 0xFFFFFFFF
    entries = ((1, 6, none), (2, 6, STRANGER), (4, 4, none), (0x10, mask, none), (0x20, 4, none))
    try:
        os.setxattr(path, "system.posix_acl_access", _access_list(*entries))
    except OSError:
        pytest.skip("this file system has no access control lists")
    distrust = load_configuration(start=place).distrust
    assert (distrust is None) is trusted
    if not trusted:
        assert "by others, by an access control list" in distrust


def test_folders_below_the_file_say_nothing_of_it(place):
    written(place.parent)
    place.chmod(0o777)
    assert load_configuration(start=place).distrust is None


@pytest.mark.parametrize("name", ["rpl.toml", "elsewhere.toml"])
def test_a_link_counts_by_where_it_lies_and_where_it_leads(place, tmp_path, name):
    real = written(tmp_path, "elsewhere.toml")
    (place / "rpl.toml").symlink_to(real)
    assert load_configuration(start=place).distrust is None
    open_one = place if name == "rpl.toml" else tmp_path
    open_one.chmod(0o777)
    assert load_configuration(start=place).distrust is not None
    tmp_path.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
@pytest.mark.parametrize(
    ("owner", "caller", "trusted"),
    [
        (0, None, True),
        (STRANGER, None, False),
        (STRANGER, str(STRANGER), True),
        (STRANGER, str(STRANGER + 1), False),
        (0, str(STRANGER), True),
        (STRANGER, "", False),
        (STRANGER, f"{STRANGER} ", False),
        (STRANGER, f"-{STRANGER}", False),
        (STRANGER, f"+{STRANGER}", False),
        (STRANGER, str(STRANGER + (1 << 32)), False),
        (STRANGER, "9" * 5000, False),
    ],
)
def test_for_root_the_caller_of_sudo_counts_too(place, monkeypatch, owner, caller, trusted):
    os.chown(written(place), owner, -1)
    if caller is not None:
        monkeypatch.setenv("SUDO_UID", caller)
    assert (load_configuration(start=place).distrust is None) is trusted


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
@pytest.mark.parametrize(
    ("owner", "trusted"), [(0, True), (STRANGER, True), (STRANGER + 1, False)], ids=["root", "own", "other"]
)
def test_for_others_root_counts_and_the_caller_of_sudo_does_not(place, monkeypatch, owner, trusted):
    os.chown(written(place), owner, -1)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    monkeypatch.setenv("SUDO_UID", str(STRANGER + 1))
    assert (load_configuration(start=place).distrust is None) is trusted


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_a_strangers_link_to_a_file_of_ones_own_is_the_strangers(place, tmp_path):
    (place / "rpl.toml").symlink_to(written(tmp_path, "own.toml"))
    os.lchown(place / "rpl.toml", STRANGER, -1)
    assert "another user" in load_configuration(start=place).distrust


def test_a_named_file_is_trusted_whoever_owns_it(place, somebody_else):
    file = written(place)
    place.chmod(0o777)
    assert load_configuration(str(file)).distrust is None


@pytest.fixture
def open_place(place):
    place.chmod(0o777)
    return place


def test_trust_is_bound_to_path_and_content(open_place, tmp_path):
    file = written(open_place)
    content = file.read_bytes()
    assert load_configuration(start=open_place).distrust is not None
    config.trust(file, content)
    assert load_configuration(start=open_place).distrust is None

    file.write_bytes(content + b"# one more byte\n")
    assert load_configuration(start=open_place).distrust is not None
    file.write_bytes(content)
    assert load_configuration(start=open_place).distrust is None

    other = tmp_path / "other"
    other.mkdir()
    other.chmod(0o777)
    (other / "rpl.toml").write_bytes(content)
    assert load_configuration(start=other).distrust is not None


def test_what_is_trusted_lies_in_the_users_own_folder(open_place, tmp_path, monkeypatch):
    file = written(open_place)
    record = config.trust(file, file.read_bytes())
    assert record.is_relative_to(tmp_path / "config" / "rpl")
    assert record.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")  # which counts as unset
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert config.trust(file, b"").is_relative_to(tmp_path / "home" / ".config")


def test_a_record_that_somebody_else_may_have_written_counts_for_nothing(open_place, tmp_path):
    file = written(open_place)
    record = config.trust(file, file.read_bytes())
    (tmp_path / "config" / "rpl").chmod(0o777)
    assert load_configuration(start=open_place).distrust is not None
    (tmp_path / "config" / "rpl").chmod(0o700)
    assert load_configuration(start=open_place).distrust is None
    record.chmod(0o666)
    assert load_configuration(start=open_place).distrust is not None


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"path": 1}', "[" * 5000, '{"sha256": "x"}', "\xff"])
def test_a_damaged_record_counts_for_nothing(open_place, text):
    file = written(open_place)
    config.trust(file, file.read_bytes()).write_text(text, encoding="latin-1")
    assert load_configuration(start=open_place).distrust is not None


def test_two_that_trust_at_once_lose_nothing(open_place, tmp_path):
    folders = [tmp_path / str(number) for number in range(20)]
    for folder in folders:
        folder.mkdir()
        folder.chmod(0o777)
        written(folder)
    files = [folder / "rpl.toml" for folder in folders]
    threads = [threading.Thread(target=config.trust, args=(f, f.read_bytes())) for f in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [load_configuration(start=folder).distrust for folder in folders] == [None] * 20


@pytest.mark.parametrize("words", [("doctor",), ("profile", "--dry-run", "--", "true"), ("config", "show")])
def test_one_line_says_what_is_ignored_and_how_to_allow_it(rpl_cli, open_place, words):
    it_ran, profiler = open_place / "it_ran", open_place / "profiler"
    profiler.write_text(f"#!/bin/sh\ntouch {it_ran}\necho 'rocprofv3 version 1.1.0'\n")
    profiler.chmod(0o755)
    file = open_place / "rpl.toml"
    file.write_text(f"runs = 7\nnative-folder = '/x'\n[plugins.rocprofv3]\nexecutable = '{profiler}'\n")
    outcome = rpl_cli("-q", *words, cwd=open_place)
    lines = [line for line in outcome.stderr.splitlines() if "not trusted" in line]
    assert len(lines) == 1
    assert "native-folder, plugins.rocprofv3.executable" in lines[0]
    assert f"`rpl config trust {file}`" in lines[0]
    assert str(open_place) in lines[0].partition("can be written by everybody")[0]
    assert not it_ran.exists()

    rpl_cli("config", "trust", file, cwd=open_place).assert_ok()
    assert "not trusted" not in rpl_cli("-q", *words, cwd=open_place).stderr
    assert it_ran.exists() == (words[0] != "config")


def test_nothing_is_said_of_a_strangers_file_that_names_nothing(rpl_cli, open_place):
    (open_place / "rpl.toml").write_text("runs = 7\n[plugins.att]\nactivity = 3\n")
    shown = rpl_cli("config", "show", "--json", cwd=open_place).assert_ok()
    assert shown.json()["runs"]["value"] == 7
    assert shown.stderr == ""


def test_trusting_shows_what_the_file_sets(rpl_cli, open_place):
    file = written(open_place, "pyproject.toml")
    told = rpl_cli("config", "trust", "pyproject.toml", cwd=open_place).assert_ok().stdout
    for name, value in {**NAMING, **HARMLESS}.items():
        assert f"{name} = " in told, value
    assert load_configuration(start=open_place).file == file
    assert load_configuration(start=open_place).distrust is None


@pytest.mark.parametrize("what", ["absent", "folder", "pipe", "no TOML"])
def test_what_is_no_settings_file_is_not_trusted(rpl_cli, tmp_path, what):
    path = tmp_path / "it"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "no TOML":
        path.write_text("= 3")
    assert str(path) in rpl_cli("config", "trust", path).assert_exit(64).stderr
    assert not (tmp_path / "config").exists()


def test_doctor_names_the_file_that_named_a_program(rpl_cli, place):
    file = place / "rpl.toml"
    file.write_text("native-folder = '/x'\n[plugins.rocprofv3]\nexecutable = '/nowhere/rocprofv3'\n")
    found = rpl_cli("doctor", "--json", cwd=place).json()["settings"]["found"]
    assert str(file) in found
    assert "plugins.rocprofv3.executable = '/nowhere/rocprofv3'" in found
    assert "native-folder = '/x'" in found
    overruled = rpl_cli("doctor", "--json", cwd=place, env={"RPL_NATIVE_FOLDER": "/y"}).json()
    assert "native-folder" not in overruled["settings"]["found"]
    place.chmod(0o777)
    found = rpl_cli("doctor", "--json", cwd=place).json()["settings"]["found"]
    assert "ignored: native-folder, plugins.rocprofv3.executable" in found


def test_replay_takes_no_program_of_a_strangers_folder(rpl_cli, open_place):
    (open_place / "build" / "replay").mkdir(parents=True)
    program = open_place / "build" / "replay" / "rpl-replay"
    program.write_text(f"#!/bin/sh\ntouch {open_place}/it_ran\n")
    program.chmod(0o755)
    (open_place / "rpl.toml").write_text(f"native-folder = '{open_place}/build'\n")
    plan = open_place / "plan"
    plan.mkdir()
    rpl_cli("replay", "reserve-check", plan, cwd=open_place)
    assert not (open_place / "it_ran").exists()


def test_every_setting_of_this_project_says_what_it_names():
    """Of the core, of options, and those that plugins read from their tables of the file."""
    host = create_host(PluginSelection(), config={})
    kinds = {setting.name: setting.kind for setting in SETTINGS}
    kinds |= {option.name: option.kind for option in host.catalog.options() if option.setting}
    kinds |= {setting.name: setting.kind for setting in host.settings}
    assert len(kinds) > 30
    assert {name for name, kind in kinds.items() if not isinstance(kind, SettingKind)} == set()
    # Whoever adds a setting that names something adds it here, and to NAMING above.
    assert {name for name, kind in kinds.items() if kind is not SettingKind.VALUE} == set(NAMING) - {
        "plugins.nobody-knows.this"
    }


def test_every_table_of_the_file_that_a_plugin_reads_is_stated():
    """Names as they stand in the sources: nobody reads a setting that no ``RPL_SETTINGS`` holds."""
    stated = {setting.name for setting in create_host(PluginSelection(), config={}).settings}
    tables = {name.rpartition(".")[0] for name in stated}
    found, wrong = set(), []
    for path in sorted((*ROOT.glob("plugins/*/src/**/*.py"), *ROOT.glob("rpl_core/**/*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            name = re.fullmatch(r"(plugins\.[a-z0-9-]+)\.?([a-z0-9-]*)", text)
            if name is None or text == "plugins.disabled":
                continue
            found.add(name[1])
            if name[1] not in tables or (name[2] and text not in stated):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: {text}")
    assert found == tables
    assert wrong == []


def test_a_plugin_whose_settings_are_none_is_refused(rpl_site):
    rpl_site.plugin("mine", "RPL_SETTINGS = ('plugins.mine.key',)\n")
    (record,) = rpl_site.host().record("mine")
    assert "RPL_SETTINGS" in record.reason


def test_a_plugin_sees_of_a_strangers_file_what_it_states_as_harmless(rpl_site):
    stated = ", ".join(
        f"PluginSetting('plugins.mine.{kind.value}', SettingKind.{kind.name}, 'x')" for kind in SettingKind
    )
    rpl_site.plugin(
        "mine",
        f"from rpl_core.interfaces.options import PluginSetting, SettingKind\nRPL_SETTINGS = ({stated},)\n",
    )
    doubtful = {f"plugins.mine.{kind.value}": "told" for kind in SettingKind} | {"plugins.mine.other": "told"}
    selection = PluginSelection(only_distributions=frozenset(rpl_site.distributions))
    host = create_host(selection, config={}, doubtful=doubtful)
    assert dict(host.relay.config) == {"plugins.mine.value": "told"}


def test_a_setting_of_a_plugin_is_in_the_table_of_that_plugin():
    with pytest.raises(ValueError, match="plugins"):
        PluginSetting("executable", SettingKind.PROGRAM, "x")


def test_a_record_holds_path_and_hash_only(open_place):
    file = written(open_place)
    told = json.loads(config.trust(file, file.read_bytes()).read_text())
    assert told.keys() == {"path", "sha256"}
