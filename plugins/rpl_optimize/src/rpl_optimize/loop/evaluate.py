"""One built candidate through all gates after the build; what each found goes to the ledger at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.ingest import load_recording
from rpl_core.pipeline import architectures
from rpl_core.values import frozen
from rpl_optimize.contracts import EvidencePart, GuardPart, PlacementPart, PlannedData, ShiftPart
from rpl_optimize.equivalence.stage import EquivalenceSubject
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.interfaces.transformation import KernelSource, SeveralBlocks, ShuffledReduction
from rpl_optimize.ledger.lines import LedgerEvent
from rpl_optimize.loop.binary_stage import (
    KnownCode,
    LaunchLimit,
    guard_builds,
    guard_new_code,
    largest_launch,
    launch_of,
    why_not_moved,
)
from rpl_optimize.measurement.gains import PADDINGS, is_wanted
from rpl_optimize.measurement.measure import PairsAlone, measure_from, rule_of
from rpl_optimize.measurement.verdict import find_against, find_against_alone, find_against_fresh, is_verified
from rpl_optimize.session_layout import fresh

if TYPE_CHECKING:
    from rpl_optimize.build.builders import BuiltProgram
    from rpl_optimize.ledger.session_files import Begun
    from rpl_optimize.loop.baseline import Baseline, Target
    from rpl_optimize.loop.measuring import MeasureStage, ModelStage
    from rpl_optimize.loop.proposing import Built
    from rpl_optimize.loop.session import OptimizeRequest, Tools

    Record = Callable[[LedgerEvent, dict[str, object]], None]


@frozen(eq=False)
class Trial:
    """A candidate on its way: what it must beat and which kernel it changes.

    ``known_code`` is the device code of all programs that were judged before, by its hash.
    """

    built: Built
    build: BuiltProgram
    baseline: Baseline
    target: Target
    known_code: Mapping[str, KnownCode] = attrs.field(factory=dict)
    #: The source whose host code the version to beat has.
    host: bytes = b""
    #: What an interrupted session measured of this very program against this very version to beat.
    begun: Begun | None = None

    @property
    def number(self) -> int:
        return self.built.proposed.number

    @property
    def directory(self) -> Path:
        return self.built.proposed.directory

    @property
    def exchanged(self) -> int:
        """Of how many reductions the candidate hands the last steps from lane to lane."""
        return sum(isinstance(one, ShuffledReduction) for one in self.built.proposed.candidate.declares)

    @property
    def repeated(self) -> bool:
        """Whether the candidate's blocks do the work of several."""
        return any(isinstance(one, SeveralBlocks) for one in self.built.proposed.candidate.declares)


@frozen(eq=False)
class Evaluation:
    """The gates in their order. ``step`` names each stage when it begins."""

    request: OptimizeRequest
    tools: Tools
    measuring: MeasureStage
    record: Record
    draw_seed: Callable[[], int]
    recordings: Callable[..., Mapping[str, str]]  # hashes of what was recorded in these directories
    modelling: ModelStage | None = None
    #: Returns when what comes behind the guards, which run nothing, may begin.
    before_runs: Callable[[int], None] = lambda _candidate: None
    #: Plans of an interrupted session that the candidate goes on with, by stage and padding.
    _plans: dict[tuple[str, int | None], PlannedData] = attrs.field(factory=dict)
    #: Builds of the version to beat with shifted code, by its number and the padding.
    _shifted_bases: dict[tuple[int, int], BuiltProgram | BuildFailure] = attrs.field(factory=dict)

    def run(self, trial: Trial) -> EvidencePart:
        """Evidence as far as the candidate got. Stops at the first gate that refuses it.

        With a model nothing is measured, whatever its figures say."""
        evidence = EvidencePart(source_guards=trial.built.proposed.guards, build=trial.built.part)
        measured = (self._go_on, self._alone, self._measure, self._confirm, self._place)
        last = measured if self.modelling is None else (self._compare_by_model,)
        for gate in (self._binary, self._equivalence, *last):
            evidence, goes_on = gate(trial, evidence)
            if not goes_on:
                break
        return evidence

    def _say(self, trial: Trial, stage: str) -> None:
        self.tools.step(f"candidate {trial.number}: {stage}")

    def _binary(self, trial: Trial, evidence: EvidencePart) -> tuple[EvidencePart, bool]:
        self._say(trial, "binary guards")
        guards = guard_builds(
            trial.baseline.build,
            trial.build,
            trial.target.kernel,
            self.tools.builder.plugin,
            launch=launch_of(trial.baseline.documents.model("profile"), trial.target.recorded),
            architecture_of=architectures(None, self.tools.host),
            must_change_loop=trial.built.proposed.candidate.changes_loop,
            allow_occupancy_loss=self.request.policy.allow_occupancy_loss,
            measured=self.modelling is None,
            limit=self._limit(trial),
            lds_growth=trial.built.proposed.candidate.lds_growth,
            retuned=trial.built.proposed.retuned,
            exchanged=trial.exchanged,
            repeated=trial.repeated,
        )
        # Other launches of the same machine code are another program.
        known = guard_new_code(
            trial.built.proposed.sha256 if trial.built.proposed.changes_launches else trial.build.code_sha256,
            trial.known_code,
        )
        guards = (known, *_host_code(trial.build), *guards)
        self.record(LedgerEvent.BINARY_GUARDED, {"candidate": trial.number, "guards": guards})
        reproducible = evidence.build is not None and evidence.build.reproducible is True
        more = evidence.model_copy(update={"binary_guards": guards})
        return more, reproducible and all(guard.passed for guard in guards)

    def _limit(self, trial: Trial) -> LaunchLimit | None:
        promised = trial.built.proposed.candidate.workgroup_limit
        if promised is None:
            return None
        if trial.built.proposed.changes_launches:  # the judge looked at all launches of the edited source
            return LaunchLimit(promised, promised, "launch of the edited source")
        readers = self.tools.host.catalog.readers().contributions
        recording = load_recording((trial.baseline.profile_directory,), readers)
        return LaunchLimit(promised, largest_launch(recording, trial.target.kernel))

    def _equivalence(self, trial: Trial, evidence: EvidencePart) -> tuple[EvidencePart, bool]:
        self.before_runs(trial.number)
        self._say(trial, "equivalence")
        directory = fresh(trial.directory, "equivalence")
        checks = self.tools.equivalence.run(self._subject(trial), directory)
        self.record(LedgerEvent.EQUIVALENCE_CHECKED, {"candidate": trial.number, "checks": checks})
        different = any(check.verdict == "different" for check in checks)
        return evidence.model_copy(update={"checks": checks}), not different

    def _compare_by_model(self, trial: Trial, evidence: EvidencePart) -> tuple[EvidencePart, bool]:
        assert self.modelling is not None
        self._say(trial, "model")
        directory = fresh(trial.directory, "model")
        part = self.modelling.compare(trial, directory)
        told = {"candidate": trial.number, "modelled": part}
        self.record(LedgerEvent.MODELLED, {**told, "recordings": self.recordings(directory)})
        return evidence.model_copy(update={"modelled": part}), False

    def _subject(self, trial: Trial) -> EquivalenceSubject:
        source = KernelSource(str(self.request.source), trial.baseline.text, trial.target.kernel)
        return EquivalenceSubject(
            source,
            trial.baseline.build,
            trial.build,
            self.request.command,
            trial.host,
            same_launches=not trial.built.proposed.changes_launches,
            same_barriers=not (trial.exchanged or trial.repeated),
        )

    def _go_on(self, trial: Trial, evidence: EvidencePart) -> tuple[EvidencePart, bool]:
        """Take over what was measured before an interruption: to measure it anew would be another draw."""
        self._plans.clear()
        if trial.begun is None:
            return evidence, True
        told, plans = self.measuring.continued(trial.number, trial.begun)
        if told is None:
            return evidence, True
        self.record(LedgerEvent.CONTINUED, told.model_dump())
        self._plans.update({(plan.stage, plan.padding_bytes): plan for plan in plans})
        return evidence.model_copy(update=dict(trial.begun.parts)), True

    def _alone(self, trial: Trial, evidence: EvidencePart) -> tuple[EvidencePart, bool]:
        """Times of the kernel alone from a check that runs it so: cheap, and enough against a candidate."""
        if evidence.kernel_alone is not None:
            return evidence, not any(find_against_alone(evidence.kernel_alone, self.request.policy))
        stage = self.tools.equivalence
        check = stage.timing(evidence.checks or ())
        plan = None if check is None else self.measuring.plan_alone(trial, self.draw_seed())
        if check is None or plan is None:
            return evidence, True
        self._say(trial, f"the kernel alone, by {check}")
        self.record(LedgerEvent.PLANNED, plan.model_dump())
        subject, directory = self._subject(trial), fresh(trial.directory, "alone")
        source = PairsAlone(lambda order: stage.time_kernel(check, subject, directory, order))
        part = measure_from(source, trial.target.recorded, rule_of(plan.rule), seed=plan.seed)
        self.record(LedgerEvent.TIMED_ALONE, {"candidate": trial.number, "measurement": part})
        more = evidence.model_copy(update={"kernel_alone": part})
        return more, not any(find_against_alone(part, self.request.policy))

    def _measure(self, trial: Trial, evidence: EvidencePart) -> tuple[EvidencePart, bool]:
        self._say(trial, "measurement")
        if evidence.measurement is not None:
            return evidence, self._may_go_on(evidence)
        plan = self._plans.get(("measurement", None)) or self.measuring.plan(trial, self.draw_seed())
        if isinstance(plan, PlannedData):
            if plan.directory is None:
                plan = self.measuring.opened(trial, plan, fresh(trial.directory, "measure"))
                self.record(LedgerEvent.PLANNED, plan.model_dump())
                self.measuring.begin()
            directories = [self.measuring.root / (plan.directory or "")]
            measurement = self.measuring.measure(trial, plan)
        else:
            directories = []
            measurement = plan
        proven = not any(find_against(measurement, self.request.policy))
        guards: tuple[GuardPart, ...] = ()
        if proven and self.request.policy.traffic_gate:
            self._say(trial, "memory traffic")
            directories.append(fresh(trial.directory, "traffic"))
            guards = (self.measuring.traffic(trial, directories[-1]),)
        self.record(
            LedgerEvent.MEASURED,
            {
                "candidate": trial.number,
                "measurement": measurement,
                "architecture_guards": guards,
                "recordings": self.recordings(*directories),
            },
        )
        more = evidence.model_copy(update={"measurement": measurement, "architecture_guards": guards})
        return more, self._may_go_on(more)

    def _may_go_on(self, evidence: EvidencePart) -> bool:
        proven = not any(find_against(evidence.measurement, self.request.policy))
        possible = is_verified(evidence) or self.request.policy.allow_unverified
        return proven and possible and all(guard.passed for guard in evidence.architecture_guards)

    def _confirm(self, trial: Trial, evidence: EvidencePart) -> tuple[EvidencePart, bool]:
        self._say(trial, "fresh measurement")
        first = evidence.measurement
        assert first is not None
        again = evidence.remeasurement
        if again is None:
            plan = self._plans.get(("remeasurement", None))
            if plan is None:
                plan = self.measuring.plan_again(trial, first, self.draw_seed())
                plan = self.measuring.opened(trial, plan, fresh(trial.directory, "remeasure"))
                self.record(LedgerEvent.PLANNED, plan.model_dump())
            again = self.measuring.again(trial, plan)
            told = {"candidate": trial.number, "measurement": again}
            recordings = self.recordings(self.measuring.root / (plan.directory or ""))
            self.record(LedgerEvent.REMEASURED, {**told, "recordings": recordings})
        more = evidence.model_copy(update={"remeasurement": again})
        return more, not any(find_against_fresh(again, first, self.request.policy))

    def _place(self, trial: Trial, evidence: EvidencePart) -> tuple[EvidencePart, bool]:
        """The gain where the code lies elsewhere, if it is small or the user wants to know."""
        if not is_wanted(evidence, self.request.policy) or evidence.placement is not None:
            return evidence, True
        self._say(trial, "placement")
        shifts: list[ShiftPart] = []
        problem: str | None = None
        directories: list[Path] = []
        for padding in PADDINGS:
            directory = fresh(trial.directory, f"shifted-{padding}")
            shifted = self._shifted(trial, evidence, padding, directory)
            if isinstance(shifted, str):
                problem = shifted
                break
            shifts.append(shifted)
            directories.append(self.measuring.root / (shifted.measurement.directory or ""))
        placement = PlacementPart(shifts=tuple(shifts), problem=problem)
        told = {"candidate": trial.number, "placement": placement}
        self.record(LedgerEvent.PLACED, {**told, "recordings": self.recordings(*directories)})
        return evidence.model_copy(update={"placement": placement}), True

    def _shifted(
        self, trial: Trial, evidence: EvidencePart, padding: int, directory: Path
    ) -> ShiftPart | str:
        """Base and candidate measured with shifted code, or why they were not."""
        key, text = (trial.baseline.number, padding), trial.built.proposed.text
        assert text is not None
        if key not in self._shifted_bases:
            shifted = self.tools.builder.padded(trial.baseline.text, padding)
            self._shifted_bases[key] = self.tools.builder.build(shifted, directory / "base", trial.host)
        base = self._shifted_bases[key]
        moved = self.tools.builder.padded(text, padding)
        host = None if trial.built.proposed.changes_launches else trial.host
        new = self.tools.builder.build(moved, directory / "new", host)
        for plain, built in ((trial.baseline.build, base), (trial.build, new)):
            if isinstance(built, BuildFailure):
                return f"no build with shifted code: {built.reason}"
            own_host = built is new and host is None
            if not own_host and (built.host_code is None or not built.host_code.passed):
                return "a build with shifted code has other host code"
            why = why_not_moved(plain, built, trial.target.kernel)
            if why is not None:
                return why
        assert not isinstance(base, BuildFailure)
        assert not isinstance(new, BuildFailure)
        first = evidence.measurement
        assert first is not None
        plan = self._plans.get(("placement", padding))
        if plan is None:
            plan = self.measuring.plan_shifted(trial, first, self.draw_seed(), padding)
            plan = self.measuring.opened(trial, plan, directory / "measure", (base, new))
            self.record(LedgerEvent.PLANNED, plan.model_dump())
        part = self.measuring.again(trial, plan, (base, new))
        return ShiftPart(padding_bytes=padding, measurement=part)


def _host_code(build: BuiltProgram) -> tuple[GuardPart, ...]:
    changes = build.host_code
    if changes is None:
        return ()
    return (GuardPart(guard=changes.guard, passed=changes.passed, reason=changes.reason),)
