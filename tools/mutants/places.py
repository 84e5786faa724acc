"""Which changes of meaning there are: the operators of cosmic-ray on everything that users install.

A change is kept as the lines that it replaces, so that it can be made again without counting operators.
"""

from __future__ import annotations

import ast
import difflib
import random
from collections import defaultdict
from functools import cache
from pathlib import Path

import attrs

__all__ = ["ROOT", "Mutant", "area_of", "draw", "mutated", "now"]

ROOT = Path(__file__).resolve().parents[2]
#: The tests' own tool, and texts that a build writes: no program of a user runs them.
_NO_AREAS = ("rpl_testkit", "rpl_native")
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


def draw(seed: int, count: int) -> list[Mutant]:
    """``count`` mutants, each area's share by its lines.

    Within an area a file is drawn by its lines, then one of its places, then one of the changes there.
    """
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    rng = random.Random(seed)
    lines = _lines()
    drawn: dict[tuple[str, tuple[str, ...], int], Mutant] = {}
    for area, quota in _quotas(_areas_by_lines(), count).items():
        files = [path for path in lines if area_of(path) == area]
        wanted = len(drawn) + quota
        while len(drawn) < wanted:
            (path,) = rng.choices(files, [lines[path] for path in files])
            places = sorted(_places(path).items())
            if not places:
                continue
            name, occurrence = rng.choice(rng.choice(places)[1])
            source = path.read_text(encoding="utf-8")
            changed = mutate_code(source, get_operator(name)(), occurrence)
            mutant = _mutant(path, name, source, changed or source)
            if mutant is not None and _what_runs(changed or "") not in ("", _what_runs(source)):
                drawn[mutant.path, mutant.after, mutant.line] = mutant
    return sorted(drawn.values(), key=lambda mutant: (mutant.path, mutant.line, mutant.after))


def area_of(path: Path) -> str:
    """The distribution that a file belongs to, or the place of its path below the root."""
    parts = path.relative_to(ROOT).parts if path.is_absolute() else path.parts
    return parts[1] if parts[0] == "plugins" else parts[0]


def _areas_by_lines() -> dict[str, int]:
    """The lines of each area, of which its share of a draw comes."""
    sizes: dict[str, int] = defaultdict(int)
    for path, lines in _lines().items():
        sizes[area_of(path)] += lines
    return sizes


@cache
def _lines() -> dict[Path, int]:
    return {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _files()}


def _quotas(sizes: dict[str, int], count: int) -> dict[str, int]:
    """``count`` over the areas in proportion to their lines; what is left goes to the largest remainders."""
    shares = {area: count * size / sum(sizes.values()) for area, size in sizes.items()}
    quotas = {area: int(share) for area, share in shares.items()}
    behind = sorted(shares, key=lambda area: (quotas[area] - shares[area], area))
    for area in behind[: count - sum(quotas.values())]:
        quotas[area] += 1
    return dict(sorted(quotas.items()))


def now(mutant: Mutant) -> Mutant | None:
    """``mutant`` with the line where its text stands now; None if it is not there (once)."""
    if not (ROOT / mutant.path).exists():
        return None
    lines = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines(keepends=True)
    before = list(mutant.before)
    found = [i for i in range(len(lines)) if lines[i : i + len(before)] == before]
    if mutant.line - 1 in found:
        found = [mutant.line - 1]
    return attrs.evolve(mutant, line=found[0] + 1) if len(found) == 1 else None


def mutated(mutant: Mutant) -> str:
    """The source with the change made at its line."""
    lines = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines(keepends=True)
    lines[mutant.line - 1 : mutant.line - 1 + len(mutant.before)] = mutant.after
    return "".join(lines)


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


def _files() -> list[Path]:
    sources = [ROOT / "rpl_core", ROOT / "metapackage" / "src", *sorted(ROOT.glob("plugins/*/src"))]
    found = [path for source in sources for path in sorted(source.rglob("*.py"))]
    return [path for path in found if area_of(path) not in _NO_AREAS]


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
