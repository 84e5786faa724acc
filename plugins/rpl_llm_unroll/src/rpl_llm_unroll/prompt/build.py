"""Put a prompt together from the documents, the source and the built program."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from rpl_analysis.text import number, percent
from rpl_core.errors import InterruptedRunError, RplError, UsageError
from rpl_core.interfaces.section import Paragraph, SectionRequest, Table
from rpl_core.plugins.boundary import plugin_boundary, show_traceback
from rpl_core.text import counted
from rpl_llm_unroll.prompt.model import (
    NOT_COLLECTED,
    SYSTEM,
    Prompt,
    RunFacts,
    Section,
    bullets,
    contract_section,
    fenced,
    inline,
    known,
    missing,
    rules_section,
    run_facts,
    sentence,
    subject_of,
    without_folders,
)
from rpl_llm_unroll.prompt.sections import (
    bottleneck_section,
    machine_code_section,
    roofline_section,
    weight_section,
)
from rpl_llm_unroll.reply import Target
from rpl_transforms.source_file import function_name
from rpl_transforms.syntax import text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from rpl_core.interfaces.section import SectionOf
    from rpl_llm_unroll.settings import Form
    from rpl_optimize.interfaces.proposer import Attempt, ProposalRequest


# What of a source file a reader of one kernel needs: macros, types, constants and functions that it
# uses.


_WORDS = frozenset({"identifier", "type_identifier", "field_identifier", "namespace_identifier"})
_DEFINING = frozenset(
    {
        *("preproc_def", "preproc_function_def", "function_definition", "template_declaration"),
        *("struct_specifier", "class_specifier", "enum_specifier", "alias_declaration", "type_definition"),
        *("declaration", "static_assert_declaration"),
    }
)
_ALWAYS = frozenset({"preproc_include", "using_declaration"})
#: Longer functions are shown by their head: the kernel is what may change (chosen).
_LONGEST_FUNCTION = 40


def context_of(target: Target) -> str:
    """Definitions of the file that the kernel uses, directly or through others, in file order."""
    pieces = [n for n in _pieces(target.file.root) if not _holds(n, target.kernel.outer)]
    defined = [(piece, _names(piece)) for piece in pieces]
    wanted = _words(target.kernel.outer)
    kept: set[int] = {piece.id for piece, _ in defined if piece.type in _ALWAYS}
    while True:
        more = [p for p, names in defined if p.id not in kept and names & wanted]
        if not more:
            break
        for piece in more:
            kept.add(piece.id)
            wanted |= _words(piece)
    return "\n".join(_shown(piece) for piece, _ in defined if piece.id in kept)


def _pieces(root: Node) -> list[Node]:
    """Definitions at file or namespace scope, outermost first, in file order."""
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        if node.type in _DEFINING or node.type in _ALWAYS:
            found.append(node)
        elif node.type != "compound_statement":
            waiting.extend(reversed(node.children))
    return found


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _names(piece: Node) -> set[str]:
    """Names that a piece defines; over-complete for declarations, which costs a line at most."""
    if piece.type.startswith("preproc_"):
        name = piece.child_by_field_name("name")
        return {text_of(name)} if name is not None else set()
    functions = [n for n in walk(piece, skip=("compound_statement",)) if n.type == "function_definition"]
    if piece.type in {"function_definition", "template_declaration"} and functions:
        return {function_name(functions[0])}
    return {
        text_of(node)
        for node in walk(piece, skip=("compound_statement", "parameter_list", "template_parameter_list"))
        if node.type in {"identifier", "type_identifier"}
    }


def _words(piece: Node) -> set[str]:
    words = {text_of(n) for n in walk(piece) if n.type in _WORDS}
    for node in walk(piece):
        if node.type == "preproc_arg":  # the text of a macro is not parsed
            words |= set("".join(c if c.isalnum() or c == "_" else " " for c in text_of(node)).split())
    return words


def _shown(piece: Node) -> str:
    text = text_of(piece).rstrip()
    body = next((n for n in walk(piece) if n.type == "compound_statement"), None)
    if body is None or text.count("\n") < _LONGEST_FUNCTION:
        return text + (";" if piece.type in {"struct_specifier", "class_specifier", "enum_specifier"} else "")
    head = (piece.text or b"")[: body.start_byte - piece.start_byte].decode("utf-8", "replace").rstrip()
    return f"{head};  // {counted(text.count(chr(10)) + 1, 'line')}, body left out"


# Sections on the device and on the kernel's resources.


def device_section(facts: RunFacts) -> Section:
    """Name, architecture, waves, units and every ceiling with its origin and source."""
    if facts.profile is None:
        return Section("Device", missing("no run was given"))
    gpu = facts.profile.gpu
    if gpu.architecture is None and gpu.product is None:
        return Section("Device", missing(gpu.reason))
    rows = [
        ("product", known(gpu.product)),
        ("architecture", known(gpu.architecture)),
        ("wave size", known(gpu.wave_size, "lanes")),
        ("compute units", known(gpu.compute_units)),
        ("engine clock", known(gpu.clock_mhz, "MHz")),
    ]
    return Section("Device", bullets([*rows, *_ceilings(facts)]))


def _ceilings(facts: RunFacts) -> list[tuple[str, str]]:
    ceilings = facts.roofline.ceilings if facts.roofline is not None else None
    if ceilings is None or not (ceilings.compute or ceilings.memory):
        return [("ceilings", NOT_COLLECTED)]
    memory = [
        (f"ceiling of {c.level} ({c.origin})", f"{number(c.peak_gbps)} GB/s, source: {sentence(c.source)}")
        for c in ceilings.memory
    ]
    compute = [
        (
            f"ceiling of {c.data_type} on {c.pipe} ({c.origin})",
            f"{number(c.peak_gflops)} Gop/s, source: {sentence(c.source)}",
        )
        for c in ceilings.compute
    ]
    return memory + compute


def resources_section(facts: RunFacts) -> Section:
    """Registers, LDS, scratch, launch shape, and the occupancy that they allow, with its limiter."""
    timing = facts.timing
    if timing is None:
        return Section("Launch and resources", missing("the run has no figures of this kernel"))
    shape, used, occupancy = timing.kernel, timing.resources, timing.occupancy
    rows = [
        ("grid (workgroups)", _axes(shape.grid)),
        ("block (work-items)", _axes(shape.block)),
        ("VGPRs per work-item, accumulation registers included", known(used.vgpr_per_thread)),
        ("of these architectural VGPRs", known(used.arch_vgpr)),
        ("of these accumulation VGPRs (AGPRs)", known(used.accum_vgpr)),
        ("SGPRs per wave", known(used.sgpr_per_wave)),
        ("LDS per workgroup", known(used.lds_bytes, "bytes")),
        ("scratch per work-item", known(used.scratch_bytes, "bytes")),
    ]
    if occupancy.theoretical is None:
        rows.append(("occupancy", missing(occupancy.reason)))
        return Section("Launch and resources", bullets(rows))
    waves = f"{known(occupancy.waves_per_simd)} of {known(occupancy.max_waves_per_simd)} waves per SIMD"
    rows.append(("occupancy (modelled upper bound)", f"{percent(occupancy.theoretical)}, {waves}"))
    rows.append(("limited by", known(occupancy.limiter)))
    if occupancy.next_threshold is not None:
        rows.append(("next step up", sentence(occupancy.next_threshold)))
    return Section("Launch and resources", bullets(rows))


def _axes(axes: tuple[int, ...] | None) -> str:
    return " x ".join(str(axis) for axis in axes) if axes else NOT_COLLECTED


# Section on what plugins say about the kernel, quoted; one that fails costs only its own part.


_TITLE = "What plugins say"
_LONGEST_CELL, _LONGEST_LINE = 240, 2000
#: Some hundred rows. One plugin must not fill the prompt (chosen).
_LONGEST_ANSWER = 12_000


def plugins_section(request: ProposalRequest, facts: RunFacts) -> Section:
    """What the installed sections explain about the kernel, in the order of their plugins."""
    if facts.profile is None:
        return Section(_TITLE, missing("no run was given"))
    kernel = facts.recorded if facts.timing is None else facts.timing.name
    if kernel is None:
        return Section(_TITLE, missing("the run has no figures of this kernel"))
    asked = SectionRequest({**facts.models, **request.models})
    answers = [_answer(entry, asked, kernel, request) for entry in request.sections]
    text = "\n\n".join(answer for answer in answers if answer)
    return Section(_TITLE, text or missing("no plugin knows more of the kernel"))


def _answer(entry: SectionOf, asked: SectionRequest, kernel: str, request: ProposalRequest) -> str:
    """Why a section failed is for the user: the text of an exception may differ from call to call."""
    try:
        # Blocks are looked at in here as well: attrs checks no types, and a plugin may return anything.
        with plugin_boundary(entry.plugin, f"the section {entry.section.name!r}"):
            head = f"Plugin {inline(entry.plugin)}, {inline(entry.section.title)}:"
            lines = [line for block in entry.section.explain(asked, kernel) for line in _lines(block)]
    except InterruptedRunError:
        raise
    except RplError as error:
        show_traceback(error)
        request.note(f"warning: left out of the prompt: {error.one_line()}")
        return f"Plugin {inline(entry.plugin)}: {missing('one of its sections failed')}"
    return f"{head}\n\n{fenced(_bounded(lines))}" if lines else ""


def _lines(block: object) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield _quoted(block.text, _LONGEST_LINE)
    elif isinstance(block, Table):
        for row in (block.columns, *block.rows):
            yield sentence(" | ".join(_quoted(cell, _LONGEST_CELL) for cell in row), _LONGEST_LINE)
    else:
        raise TypeError(f"a Paragraph or a Table was expected, not {type(block).__name__}")


def _quoted(text: str, width: int) -> str:
    return sentence(without_folders(text[: 4 * width]), width)


def _bounded(lines: list[str]) -> str:
    left, shown = _LONGEST_ANSWER, 0
    while shown < len(lines) and len(lines[shown]) < left:
        left -= len(lines[shown]) + 1
        shown += 1
    rest = [f"... {counted(len(lines) - shown, 'more line')}"] if shown < len(lines) else []
    return "\n".join([*lines[:shown], *rest])


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
