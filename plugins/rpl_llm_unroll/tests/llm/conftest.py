"""A request about the kernel ``blend``, and a proposer that asks a server on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from rpl_core.plugins.catalog import NamedContributions
from rpl_core.plugins.host import Contribution
from rpl_llm_unroll.endpoint import OpenAiClient
from rpl_llm_unroll.interfaces.client import LlmClient
from rpl_llm_unroll.proposers import LlmProposer
from rpl_optimize.interfaces.proposer import Attempt, ProposalRequest
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_testkit.llm_server import LlmServer, Scripted

from .sources import SOURCE

KEY = "sk-this-is-the-test-key-0123456789"


@attrs.define
class Bench:
    """``notes`` are what the user was told, ``pauses`` how long the endpoint waited between tries."""

    directory: Path
    notes: list[str] = attrs.field(factory=list)
    pauses: list[float] = attrs.field(factory=list)
    server: LlmServer | None = None
    others: tuple[LlmClient, ...] = ()

    def request(
        self,
        *,
        source: bytes = SOURCE,
        attempts: tuple[Attempt, ...] = (),
        documents: dict | None = None,
        **options: str,
    ) -> ProposalRequest:
        given = {"model": "m"} | ({"base_url": self.server.base_url} if self.server else {}) | options
        return ProposalRequest(
            KernelSource("/home/someone/src/k.hip", source, "blend"),
            documents or {},
            attempts,
            directory=self.directory,
            options={name.replace("_", "-"): value for name, value in given.items()},
            note=self.notes.append,
            offered=lambda kind: NamedContributions(
                kind.noun, [(client.name, Contribution("llm-unroll", client)) for client in self.clients]
            ),
        )

    @property
    def clients(self) -> tuple[LlmClient, ...]:
        return (OpenAiClient(sleep=self.pauses.append), *self.others)

    def proposer(self, key: str = KEY) -> LlmProposer:
        return LlmProposer({"OPENAI_API_KEY": key} if key else {})

    @property
    def log(self) -> Path:
        return self.directory / "exchanges.jsonl"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return Bench(tmp_path)


@pytest.fixture
def serve(bench: Bench) -> Iterator[Callable[..., LlmServer]]:
    """``serve("reply", Scripted(...))``: start the server with these answers, the last one repeated."""
    started: list[LlmServer] = []

    def start(*script: str | Scripted) -> LlmServer:
        answers = [Scripted(part) if isinstance(part, str) else part for part in script]
        started.append(LlmServer(answers).__enter__())
        bench.server = started[-1]
        return started[-1]

    yield start
    for server in started:
        server.__exit__(None, None, None)
