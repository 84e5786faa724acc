"""Put a prompt together from the documents, the source and the built program."""

from __future__ import annotations

import hashlib
from pathlib import PurePath
from typing import TYPE_CHECKING

from rpl_core.errors import UsageError
from rpl_llm_unroll.prompt.contract import SYSTEM, contract_section, rules_section
from rpl_llm_unroll.prompt.device import device_section, resources_section
from rpl_llm_unroll.prompt.facts import run_facts
from rpl_llm_unroll.prompt.limits import bottleneck_section, roofline_section, weight_section
from rpl_llm_unroll.prompt.machine_code import machine_code_section
from rpl_llm_unroll.prompt.model import Prompt, Section, subject_of
from rpl_llm_unroll.prompt.plugin_sections import plugins_section
from rpl_llm_unroll.prompt.quoting import fenced, inline, sentence, without_folders
from rpl_llm_unroll.prompt.source_context import context_of

if TYPE_CHECKING:
    from rpl_llm_unroll.asking.settings import Form
    from rpl_llm_unroll.prompt.facts import RunFacts
    from rpl_llm_unroll.reply.model import Target
    from rpl_optimize.interfaces.proposer import Attempt, ProposalRequest


#: About 170 000 tokens: more than most models take (chosen).
MAX_PROMPT_BYTES = 512 << 10


def build_prompt(request: ProposalRequest, target: Target, form: Form) -> Prompt:
    """The prompt. Raises ``UsageError`` when it would be too long, ``BadDataError`` for broken documents."""
    file = PurePath(request.source.path).name
    facts = run_facts(request.documents, target.kernel.name, request.recorded_kernel)
    evidence = _short_evidence(facts) if form == "compact" else _evidence(request, facts)
    prompt = Prompt(
        kernel=target.kernel.name,
        file=file,
        form=form,
        system=SYSTEM,
        sections=(
            *evidence,
            attempts_section(request.attempts),
            *source_sections(target, file, form),
            rules_section(),
            contract_section(),
        ),
        subject=_subject(request, target, form),
    )
    size = len(prompt.text().encode("utf-8", "replace"))
    if size > MAX_PROMPT_BYTES:
        raise UsageError(
            f"the prompt has {size >> 10} KiB, more than {MAX_PROMPT_BYTES >> 10}",
            next_step="leave --full-source out, or use --compact",
        )
    return prompt


def _evidence(request: ProposalRequest, facts: RunFacts) -> tuple[Section, ...]:
    return (
        device_section(facts),
        weight_section(facts),
        bottleneck_section(facts),
        roofline_section(facts),
        resources_section(facts),
        plugins_section(request, facts),
        machine_code_section(request.binary, facts),
    )


def _short_evidence(facts: RunFacts) -> tuple[Section, ...]:
    architecture = facts.architecture or "an unknown AMD GPU"
    return (
        Section("Device", f"- architecture: {architecture}"),
        bottleneck_section(facts, evidence=False),
        resources_section(facts),
    )


def _subject(request: ProposalRequest, target: Target, form: Form) -> str:
    source = hashlib.sha256(request.source.text).hexdigest()
    attempts = [[attempt.summary, attempt.verdict] for attempt in request.attempts]
    return subject_of(source, target.kernel.name, target.kernel.ordinal, form, attempts)


_LONGEST_REASON = 800


def attempts_section(attempts: tuple[Attempt, ...]) -> Section:
    if not attempts:
        return Section("Tried before", "Nothing yet.")
    rows = [f"{number}. {_row(attempt)}" for number, attempt in enumerate(attempts, 1)]
    return Section("Tried before", f"Try something else than this:\n\n{fenced(chr(10).join(rows))}")


def _row(attempt: Attempt) -> str:
    reason = sentence(without_folders(attempt.reason), _LONGEST_REASON)
    return f"{sentence(attempt.summary)}: {sentence(attempt.verdict)}: {reason}"


def source_sections(target: Target, file: str, form: Form) -> tuple[Section, ...]:
    """The kernel alone, with what it uses, or the whole file."""
    kernel = Section(
        "The kernel",
        f"{inline(target.kernel.name)}, {inline(file)}, line {target.kernel.line}:\n\n"
        + fenced(_unified(target.text), "cpp"),
    )
    if form == "compact":
        return (kernel,)
    if form == "full-source":
        whole = target.file.text.decode("utf-8", "replace")
        return (Section("The whole file (context only)", fenced(_unified(whole), "cpp")), kernel)
    context = context_of(target)
    if not context:
        return (kernel,)
    return (Section("What the kernel uses (context only)", fenced(_unified(context), "cpp")), kernel)


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n")
