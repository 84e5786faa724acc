"""What the product is made of: a bill of materials, known vulnerabilities, and licences.

``python tools/supply_chain.py sbom FOLDER`` has ``cyclonedx-py`` write ``rocm-perf-lab.cdx.json``:
the distributions of this project and all that they require, in the versions of this environment, and nothing
that only its development needs. ``audit`` asks ``pip-audit`` for vulnerabilities of the same; it reports and
never fails, as an advisory of yesterday must not stop a build of today. ``licences`` compares the licence of
each with ``ALLOWED`` and ends with exit code 1 where one is not there.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from rpl_core.plugins.entry_points import is_own, normalized

#: It requires all that users install, but for the tools of agents.
PRODUCT, AGENTS = "rocm-perf-lab", "rpl-mcp"
BILL = f"{PRODUCT}.cdx.json"
#: Permissive ones, and the MPL for files that are used as they are; by SPDX identifier.
ALLOWED = frozenset(
    {
        *("MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "PSF-2.0", "MPL-2.0", "0BSD"),
        *("Unlicense", "Zlib", "CC0-1.0", "Python-2.0"),
        *("LLVM-exception", "Public Domain"),  # the first permits more than the licence it stands with
    }
)
#: How metadata without an SPDX expression spells them: in the classifier, else in the free text.
_SPELT = {
    "MIT License": "MIT",
    "MIT": "MIT",
    "BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "apache-2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
#: A requirement's name with the extras that it asks for, and the extra that another one belongs to.
_NAME, _EXTRA = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^]]*)\])?"), re.compile(r"extra == ['\"]([^'\"]+)")
_AUDIT_S = 120


def required(*products: str) -> dict[str, metadata.Distribution]:
    """The installed distributions that ``products`` (all of this project) need, themselves among them.

    What another platform asks for is left out where it is not installed, and so are extras that none of them
    asks for.
    """
    found: dict[str, metadata.Distribution] = {}
    waiting = [*(products or (PRODUCT, AGENTS))]
    seen: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        match = _NAME.match(wanted)
        if wanted in seen or match is None:
            continue
        seen.add(wanted)
        name, extras = normalized(match[1]), {normalized(one) for one in (match[2] or "").split(",")}
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        for one in found[name].requires or ():
            extra = _EXTRA.search(one)
            if (extra is None or normalized(extra[1].strip()) in extras) and (needed := _NAME.match(one)):
                waiting.append(needed[0])
    return dict(sorted(found.items()))


def only(bill: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    """A bill of an environment with nothing but these components and what connects them."""
    wanted = set(names)
    components = [c for c in _list(bill, "components") if normalized(str(c["name"])) in wanted]
    kept = {c["bom-ref"] for c in components}
    links = [
        {
            **link,
            **({"dependsOn": [d for d in link["dependsOn"] if d in kept]} if "dependsOn" in link else {}),
        }
        for link in _list(bill, "dependencies")
        if link["ref"] in kept
    ]
    return {**bill, "components": components, "dependencies": links}


def _list(bill: Mapping[str, object], key: str) -> list[dict[str, object]]:
    value = bill.get(key)
    return value if isinstance(value, list) else []


def sbom(folder: Path) -> int:
    """Write the bill of materials into ``folder``."""
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / BILL
        done = subprocess.run(
            [
                *(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"),
                *("--output-format", "JSON", "-o", str(whole), sys.executable),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"cyclonedx-py made no bill of materials: {done.stderr[-2000:]}", file=sys.stderr)
            return 1
        bill = only(json.loads(whole.read_text(encoding="utf-8")), required())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / BILL).write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
    print(f"{folder / BILL}: {len(_list(bill, 'components'))} components")
    return 0


def audit() -> int:
    """Print known vulnerabilities; whatever comes of it, the exit code is 0."""
    theirs = {name: one.version for name, one in required().items() if name != PRODUCT and not is_own(name)}
    with tempfile.TemporaryDirectory() as place:
        listed = Path(place) / "requirements.txt"
        listed.write_text("".join(f"{name}=={version}\n" for name, version in theirs.items()))
        options = ("--no-deps", "--disable-pip", "--format", "json", "-r", str(listed))
        command = [sys.executable, "-m", "pip_audit", *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_AUDIT_S)
        except subprocess.TimeoutExpired:
            print(f"audit: not done: the service did not answer within {_AUDIT_S} s")
            return 0
    try:
        asked = json.loads(done.stdout)["dependencies"]
    except (ValueError, LookupError, TypeError):
        said = done.stderr.strip().splitlines()
        print(f"audit: not done: {said[-1] if said else f'pip-audit ended with {done.returncode}'}")
        return 0
    skipped = [one for one in asked if "skip_reason" in one]
    found = [(one, flaw) for one in asked for flaw in one.get("vulns", ())]
    for one, flaw in found:
        fixed = ", ".join(flaw.get("fix_versions", ())) or "no version yet"
        print(f"{one['name']} {one['version']}: {flaw['id']}, mended in {fixed}")
    looked = len(asked) - len(skipped)
    print(f"audit: {looked} of {len(theirs)} distributions looked up, {len(found)} known vulnerabilities")
    if skipped:
        print(f"audit: not done for {len(skipped)}: {skipped[0]['skip_reason']}")
    return 0


def licence_of(described: Mapping[str, str], classifiers: Iterable[str] = ()) -> tuple[str, ...]:
    """SPDX identifiers; what can't be told is given as the metadata spells it."""
    if expression := described.get("License-Expression"):
        return tuple(re.findall(r"[A-Za-z0-9.+-]+", re.sub(r"\b(AND|OR|WITH)\b", " ", expression)))
    told = [c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License ::")]
    told = [one for one in told if one != "OSI Approved"] or [described.get("License") or "not stated"]
    lines = (one.strip().splitlines()[0] if one.strip() else "not stated" for one in told)
    return tuple(_SPELT.get(one, one) for one in lines)


def not_allowed(distributions: Mapping[str, metadata.Distribution]) -> dict[str, tuple[str, ...]]:
    """Those of which a licence is not among ``ALLOWED``, with what they state."""
    wrong = {}
    for name, one in distributions.items():
        facts = {
            key: one.metadata[key] or "" for key in ("License-Expression", "License") if key in one.metadata
        }
        stated = licence_of(facts, one.metadata.get_all("Classifier") or ())
        if not set(stated) <= ALLOWED:
            wrong[name] = stated
    return wrong


def licences() -> int:
    """Print the licences that nobody allowed."""
    found = required()
    wrong = not_allowed(found)
    for name, stated in wrong.items():
        print(f"{name}: {', '.join(stated)} is not among the allowed licences", file=sys.stderr)
    print(f"licences of {len(found)} distributions: {len(wrong)} not allowed")
    return 1 if wrong else 0


def main() -> int:
    match sys.argv[1:]:
        case ["sbom", folder]:
            return sbom(Path(folder))
        case ["audit"]:
            return audit()
        case ["licences"]:
            return licences()
    raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
