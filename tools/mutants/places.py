"""Which changes of meaning there are: the operators of cosmic-ray on maths, decisions and readers.

A change is kept as the lines that it replaces, so that it can be made again without counting operators.
"""

from __future__ import annotations

import ast
import difflib
import random
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

import attrs

__all__ = ["Mutant", "draw", "in_scope", "mutated"]

ROOT = Path(__file__).resolve().parents[2]
#: Maths, decisions and readers: folders and files below the root of the repository.
SCOPE = (
    "plugins/rpl_analysis/src/rpl_analysis/bottleneck",
    "plugins/rpl_analysis/src/rpl_analysis/counters",
    "plugins/rpl_analysis/src/rpl_analysis/critical_path",
    "plugins/rpl_analysis/src/rpl_analysis/execution_graph",
    "plugins/rpl_analysis/src/rpl_analysis/instruction_mix",
    "plugins/rpl_analysis/src/rpl_analysis/occupancy.py",
    "plugins/rpl_analysis/src/rpl_analysis/roofline",
    "plugins/rpl_analysis/src/rpl_analysis/runtime",
    "plugins/rpl_analysis/src/rpl_analysis/what_if.py",
    "plugins/rpl_amdgpu/src",
    "plugins/rpl_att/src/rpl_att/analysis",
    "plugins/rpl_att/src/rpl_att/reading",
    "plugins/rpl_att/src/rpl_att/reduction",
    "plugins/rpl_torch/src/rpl_torch/analysis",
    "plugins/rpl_torch/src/rpl_torch/reading",
    "plugins/rpl_codeobject/src/rpl_codeobject/comparing.py",
    "plugins/rpl_codeobject/src/rpl_codeobject/cooperation.py",
    "plugins/rpl_codeobject/src/rpl_codeobject/disassembly.py",
    "plugins/rpl_codeobject/src/rpl_codeobject/occupancy.py",
    "plugins/rpl_codeobject/src/rpl_codeobject/reading",
    "plugins/rpl_compare/src/rpl_compare/comparison",
    "plugins/rpl_measure/src/rpl_measure",
    "plugins/rpl_gfx942/src",
    "plugins/rpl_rocprofv3/src/rpl_rocprofv3/readers",
    "rpl_core/devices.py",
    "rpl_core/ingest",
    "rpl_core/model",
    "rpl_core/schedule.py",
)
#: Left out: what needs names given, wiring, and `==` made `is`, the same for small numbers by accident.
_WITHOUT = (
    "VariableReplacer",
    "VariableInserter",
    "RemoveDecorator",
    "Eq_Is",
    "Is_Eq",
    "NotEq_IsNot",
    "IsNot_NotEq",
)
#: Arguments that only check the program: `zip` ends evenly, values are never compared, fields are named.
_CHECKS = ("strict", "eq", "kw_only")


@attrs.frozen
class Mutant:
    """``before`` are the lines from ``line`` (1 is the first) on that ``after`` takes the place of."""

    path: str
    line: int
    operator: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def draw(seed: int, count: int, known: Collection[tuple[str, tuple[str, ...]]] = ()) -> list[Mutant]:
    """``count`` mutants: places at random, then one of the changes that are possible there.

    ``known``: path and changed lines of those that are drawn already.
    """
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    rng = random.Random(seed)
    places = [(path, place, changes) for path in _files() for place, changes in sorted(_places(path).items())]
    rng.shuffle(places)
    drawn: list[Mutant] = []
    for path, _, changes in places:
        if len(drawn) == count:
            break
        name, occurrence = rng.choice(changes)
        source = path.read_text(encoding="utf-8")
        changed = mutate_code(source, get_operator(name)(), occurrence)
        mutant = _mutant(path, name, source, changed or source)
        if mutant is not None and (mutant.path, mutant.after) not in known:
            drawn.append(mutant)
    return sorted(drawn, key=lambda mutant: (mutant.path, mutant.line, mutant.after))


def mutated(mutant: Mutant) -> str | None:
    """The source with the change made, where its lines stand now; None if they are not there (once)."""
    if not (ROOT / mutant.path).exists():
        return None
    lines = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines(keepends=True)
    before = list(mutant.before)
    found = [i for i in range(len(lines)) if lines[i : i + len(before)] == before]
    if mutant.line - 1 in found:
        found = [mutant.line - 1]
    if len(found) != 1:
        return None
    lines[found[0] : found[0] + len(before)] = mutant.after
    return "".join(lines)


def in_scope(mutant: Mutant) -> bool:
    """Whether the change can be made today, in what programs run."""
    changed = mutated(mutant)
    if changed is None:
        return False
    source = (ROOT / mutant.path).read_text(encoding="utf-8")
    return _what_runs(changed) not in ("", _what_runs(source))


def _what_runs(source: str) -> str:
    """The tree of a module without what a draw leaves out; empty if it is no Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in _CHECKS]
    return ast.dump(tree)


def _files() -> Iterator[Path]:
    for part in SCOPE:
        place = ROOT / part
        yield from [place] if place.is_file() else sorted(place.rglob("*.py"))


def _places(path: Path) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """(line, column) -> the operators that change something there, with the number of their occurrence."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    source = path.read_text(encoding="utf-8")
    skipped = _never_run(source)
    nodes = list(ast_nodes(get_ast(source)))
    found: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    for name in operator_names():
        if name.endswith(_WITHOUT):
            continue
        operator = get_operator(name)()
        positions = [position for node in nodes for position in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(positions):
            if not any(first <= start < last for first, last in skipped):
                found[start].append((name, occurrence))
    return found


def _never_run(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations stand, what only type checkers import, and what only checks the program itself."""
    spans = []
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef):
            parts.append(node.returns)
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            parts.append(node.annotation)
        elif isinstance(node, ast.keyword) and node.arg in _CHECKS:
            parts.append(node.value)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            parts.append(node)
        spans += [
            ((part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0))
            for part in parts
            if isinstance(part, (ast.expr, ast.stmt))
        ]
    return spans


def _mutant(path: Path, operator: str, source: str, changed: str) -> Mutant | None:
    try:
        compile(changed, str(path), "exec")
    except SyntaxError:
        return None  # The star before keyword-only arguments is taken for a product, for one.
    old, new = source.splitlines(keepends=True), changed.splitlines(keepends=True)
    changes = [
        op for op in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if op[0] != "equal"
    ]
    if not changes:
        return None
    first, last = changes[0][1], changes[-1][2]
    until = len(new) - (len(old) - last)
    relative = path.relative_to(ROOT).as_posix()
    return Mutant(relative, first + 1, operator, tuple(old[first:last]), tuple(new[first:until]))
