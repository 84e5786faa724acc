"""Write which packages `rpl emu get-runtime` fetches, with their hashes, as apt's signed lists say now."""

from __future__ import annotations

import json
import time
from pathlib import Path

from rpl_emu.apt import Apt
from rpl_emu.runtime_packages import SUITES, cache_folder

TARGET = Path(__file__).parents[1] / "plugins/rpl_emu/src/rpl_emu/data/runtimes.json"


def main() -> None:
    found = {}
    for suite, suites in SUITES.items():
        apt = Apt(cache_folder() / "apt" / "-".join(suites), suites)
        apt.update()
        packages = apt.versions()
        rows = []
        for (name, version), (address, size, digest) in zip(packages, apt.addresses(packages), strict=True):
            kind, _, value = digest.partition(":")
            if kind != "SHA256":
                raise SystemExit(f"{name}: apt gives a {kind}, and the list holds SHA256")
            rows.append([name, version, address.removeprefix(apt.mirror).lstrip("/"), size, value])
        found[suite] = rows
    lines = ",\n".join(
        f'  "{suite}": [\n' + ",\n".join(f"   {json.dumps(row)}" for row in rows) + "\n  ]"
        for suite, rows in found.items()
    )
    date = time.strftime("%Y%m%dT000000Z", time.gmtime())
    TARGET.write_text(f'{{\n "date": "{date}",\n "suites": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
