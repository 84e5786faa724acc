"""The search over constants that ``rpl optimize --tune`` asks for, with a compiler and a GPU made up."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from rpl_autotune.interfaces import Phase, Proposed, Search, Strategy
from rpl_autotune.options import TUNE, TUNE_BUDGET, TUNE_FINALISTS, TUNE_RUNS, TUNE_STRATEGY
from rpl_autotune.plugin import rpl_strategies
from rpl_autotune.source_tuning import RECORD, TuningProposer
from rpl_core.errors import MissingError, PluginError
from rpl_core.interfaces.options import Options
from rpl_core.plugins.catalog import NamedContributions
from rpl_core.plugins.host import Contribution
from rpl_optimize.interfaces.proposer import Attempt, ProposalRequest, TriedOut
from rpl_optimize.interfaces.source_reading import Constant
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource, TunedConstants
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.transform import apply_edits

TEXT = b"#define TILE 16\nconstexpr int BLOCK = 256;\n"


class Reading(CompilerReading):
    """Says of ``TEXT``, with whatever values, that both constants can be tuned."""

    def constants(self, kernel: str) -> tuple[Constant, ...] | str:
        found = [
            Constant(match[1].decode(), number + 1, *match.span(2), int(match[2]), changes_launches=True)
            for number, match in enumerate(re.finditer(rb"(TILE|BLOCK)[ =]+(\d+)", self.text))
        ]
        return (*found, Constant("SIZE", 9, 0, 1, 4, refused="a loop of the host runs so often"))


class Stubborn(Strategy):
    """Proposes what it had before."""

    name, summary = "stubborn", "s"

    def start(self, request: object) -> Search:
        class Same(Search):
            def propose(self, history, pending, count):  # type: ignore[no-untyped-def]
                return (Proposed(history[0].index, Phase.EXPLORE),)

        return Same()


@attrs.define
class Bench:
    """Takes ``time_of`` of the constants; keeps what was run and told."""

    folder: Path
    time_of: Callable[[int, int], float | None]
    text: bytes = TEXT
    ran: list[tuple[int, int]] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)

    def try_out(self, candidate: EditCandidate, runs: int) -> TriedOut:
        after = apply_edits(self.text, candidate.edits)
        tile, block = (int(one) for one in re.findall(rb"\d+", after))
        assert candidate.declares == (TunedConstants((("BLOCK", block), ("TILE", tile))),)
        self.ran.append((tile, block))
        value = self.time_of(tile, block)
        if value is None:
            return TriedOut(None, problem="guard tuned-constants: too many work-items", built=False)
        return TriedOut(value)

    def request(self, *attempts: str, **settings: object) -> ProposalRequest:
        known = {one.name: one for one in (TUNE, TUNE_BUDGET, TUNE_RUNS, TUNE_FINALISTS, TUNE_STRATEGY)}
        options = Options().with_value(TUNE, True)
        for name, value in settings.items():
            options = options.with_value(known[name.replace("_", "-")], value)
        offered = [(one.name, Contribution("autotune", one)) for one in (*rpl_strategies(), Stubborn())]
        analysed = {"kernels": [{"kernel": "k(float*)", "critical_path_score": 0.5}]}
        return ProposalRequest(
            KernelSource("k.hip", self.text, "k", reading=Reading("no compiler", self.text)),
            {"analysis": analysed},
            tuple(Attempt(one, "rejected", "") for one in attempts),
            recorded_kernel="k(float*)",
            directory=self.folder,
            note=self.notes.append,
            offered=lambda kind: NamedContributions(kind.noun, offered),
            plugin_options=options,
            try_out=self.try_out,
            usual_run_s=2.0,
        )


def _time(tile: int, block: int) -> float | None:
    """Best at 32 and 128; not possible above 2048 work-items."""
    if tile * block > 8192:
        return None
    return 10.0 + abs(tile.bit_length() - 6) + 0.5 * abs(block.bit_length() - 8)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, _time)


def test_the_best_that_the_search_saw_is_proposed_first(bench):
    proposer = TuningProposer()
    first = proposer.propose(bench.request(tune_budget=25))
    assert first is not None
    assert (first.summary, first.kernel, first.line) == ("tune BLOCK=128, TILE=32", "k", 1)
    assert apply_edits(TEXT, first.edits) == b"#define TILE 32\nconstexpr int BLOCK = 128;\n"
    assert first.evidence is not None
    # 11.5 ms as it stands, 10 ms at best, and half of the application is this kernel.
    assert first.evidence.expected_gain == (0.0, pytest.approx(0.5 * (1 - 10.0 / 11.5)))
    assert dict(first.evidence.facts) == {"critical_path_score": 0.5, "tried_ms": 10.0, "untuned_ms": 11.5}
    assert bench.ran[0] == (16, 256), "the source as it stands is what all are compared with"
    assert len(bench.ran) == len(set(bench.ran))
    told = "\n".join(bench.notes)
    assert "SIZE (line 9) is left as it is: a loop of the host runs so often" in told
    assert "TILE (4, 8, 16, 32, 64), BLOCK (64, 128, 256, 512, 1024); launches follow TILE, BLOCK" in told
    assert "25 configurations; at most 25 are built, checked and run 3 times each, some 150 s of runs" in told
    # The search is over: another proposal runs nothing.
    ran = len(bench.ran)
    second = proposer.propose(bench.request(first.summary, tune_budget=25))
    assert second is not None
    assert second.summary not in {first.summary, "tune BLOCK=256, TILE=16"}
    assert proposer.propose(bench.request(first.summary, second.summary, tune_budget=25)) is None
    assert len(bench.ran) == ran


def test_a_budget_counts_what_is_built(bench):
    assert TuningProposer().propose(bench.request(tune_budget=6, tune_finalists=1)) is not None
    assert sum(_time(*one) is not None for one in bench.ran) == 6


def test_an_interrupted_search_goes_on(bench):
    first = TuningProposer().propose(bench.request(tune_budget=8))
    ran = list(bench.ran)
    record = bench.folder / RECORD
    lines = record.read_text().splitlines()
    assert json.loads(lines[0])["values"] == {"TILE": 16, "BLOCK": 256}
    # The last one is torn, others are of somebody else or say what can't be.
    strange = ['{"kernel": "other"}', "[]", '{"kernel": "k", "values": 1, "value": -1.0, "problem": null}']
    strange += [json.dumps(json.loads(lines[0]) | {"values": values}) for values in ([1], None, {"TILE": []})]
    record.write_text("\n".join([*lines[:-1], *strange, lines[-1][:20]]) + "\n")
    bench.ran.clear()
    again = TuningProposer().propose(bench.request(tune_budget=8))
    assert again == first
    assert bench.ran == ran[-1:]


def test_who_did_not_ask_gets_nothing(bench):
    proposer = TuningProposer()
    request = bench.request()
    plain = attrs.evolve(request, plugin_options=Options())
    spent = attrs.evolve(request, spent=frozenset(("tuned-constants",)))
    blind = attrs.evolve(request, source=attrs.evolve(request.source, reading=None))
    alone = attrs.evolve(request, try_out=None)
    assert [proposer.propose(one) for one in (plain, spent, blind, alone)] == [None] * 4
    assert bench.ran == []


def test_a_source_that_can_not_be_timed_ends_the_search(bench):
    bench.time_of = lambda tile, block: None
    assert TuningProposer().propose(bench.request()) is None
    assert len(bench.ran) == 1
    assert "the source as it stands could not be timed: guard tuned-constants" in bench.notes[-1]


def test_finalists_follow_an_accepted_source(bench):
    """One search; its other finalist is an edit of the source as it is now."""
    proposer = TuningProposer()
    first = proposer.propose(bench.request(tune_budget=25))
    assert first is not None
    bench.text = apply_edits(TEXT, first.edits) + b"// accepted\n"
    ran = len(bench.ran)
    second = proposer.propose(bench.request(first.summary, tune_budget=25))
    assert second is not None
    assert apply_edits(bench.text, second.edits).endswith(b"// accepted\n")
    assert len(bench.ran) == ran


def test_a_strategy_that_repeats_itself_is_named(bench):
    with pytest.raises(PluginError, match="only what it had before"):
        TuningProposer().propose(bench.request(tune_strategy="stubborn"))
    with pytest.raises(MissingError, match="unknown strategy"):
        TuningProposer().propose(bench.request(tune_strategy="missing"))


def test_a_proposer_that_does_not_search_refuses_the_option(rpl_cli, tmp_path) -> None:
    """Nobody measures for an hour and then finds that --tune did nothing."""
    (tmp_path / "k.hip").write_text("__global__ void k() {}")
    (tmp_path / "app").symlink_to("/bin/true")
    words = ("optimize", "--auto-approve", "--tune", "k.hip", "./app")
    outcome = rpl_cli(*words[:2], "--proposer", "deterministic", *words[2:], cwd=tmp_path)
    assert outcome.exit_code == 64
    (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("rpl: ")]
    assert "--tune asks for the proposer tune, and --proposer deterministic asks no other" in line
    for proposer in ("ranked", "tune"):
        outcome = rpl_cli(*words[:2], "--proposer", proposer, *words[2:], cwd=tmp_path)
        assert "asks for the proposer" not in outcome.stderr
    outcome = rpl_cli("optimize", "--auto-approve", "--proposer", "tune", *words[3:], cwd=tmp_path)
    assert outcome.exit_code == 64
    (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("rpl: ")]
    assert "--proposer tune proposes nothing without --tune" in line
