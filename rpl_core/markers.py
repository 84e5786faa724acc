"""The two pluggy markers of the project."""

from __future__ import annotations

import pluggy

#: Name under which hooks are marked; plugins never spell it, they import ``hookimpl``.
PROJECT = "rpl"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
