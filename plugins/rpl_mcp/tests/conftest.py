"""A client of the reference SDK against `rpl mcp` as a process, over its stdin and stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from mcp import Client, StdioServerParameters, stdio_client

START = "import sys; from rpl_core.cli import main; sys.exit(main())"


@attrs.frozen
class Agent:
    """Calls tools and keeps what they say of their progress."""

    client: Client
    progress: list[str]

    async def __call__(self, name: str, **arguments: object) -> Any:
        """The structured result of a call."""
        answer = await self.client.call_tool(name, arguments, progress_callback=self._progress)
        assert not answer.is_error, answer.content
        return answer.structured_content

    async def refused(self, name: str, **arguments: object) -> str:
        """What a call that fails says."""
        answer = await self.client.call_tool(name, arguments)
        assert answer.is_error, answer.structured_content
        return answer.content[0].text

    async def _progress(self, _count: float, _total: float | None, message: str | None) -> None:
        self.progress.append(message or "")


@asynccontextmanager
async def agent(root: Path, *words: str, plugins: tuple[str, ...] = ()) -> AsyncIterator[Agent]:
    before = [word for module in plugins for word in ("-p", module)]
    command = ["-c", START, *before, "mcp", "--root", str(root), *words]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        yield Agent(client, [])


@pytest.fixture
def act() -> Callable[..., Any]:
    """``act(talk, root, *words)``: what ``talk`` returns, which gets an agent of a server of ``root``."""

    def run(talk: Any, root: Path, *words: str, plugins: tuple[str, ...] = ()) -> Any:
        async def whole() -> Any:
            async with agent(root, *words, plugins=plugins) as one:
                return await talk(one)

        return anyio.run(whole)

    return run
