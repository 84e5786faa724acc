"""Refuse names that can't be a distribution, a module and an entry point at once."""

import re
import sys

NAME = "{{ cookiecutter.plugin_name }}"
LINES = {"summary": {{ cookiecutter.summary | tojson }}, "author": {{ cookiecutter.author | tojson }}}
TAKEN = {"core", "gfx942", "gfx950", "gfx90a", "gfx1100", "gfx1030", "amdgpu", "rocprofv3", "att", "llm-unroll", "vmreplay", "emu", "native"}

if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", NAME):
    sys.exit(f"plugin_name {NAME!r}: use lower-case words joined by '-', without the prefix rpl-")
if NAME in TAKEN or NAME.startswith("rpl-"):
    sys.exit(f"plugin_name {NAME!r} is taken by rpl itself, or begins with rpl-")
for what, text in LINES.items():
    if not text.strip() or not text.isprintable():
        sys.exit(f"{what}: one line of text, please")
