"""``rpl docs``: the pages of the documentation that were installed with the program."""

from __future__ import annotations

from pathlib import Path

import click

from rpl_core.cli.session import session_of
from rpl_core.errors import UsageError
from rpl_core.text.alike import did_you_mean


@click.command("docs")
@click.argument("page", required=False)
@click.option("--path", "only_path", is_flag=True, help="Print where the page lies instead of its text.")
@click.pass_context
def docs(context: click.Context, page: str | None, only_path: bool) -> None:
    """Print PAGE (Markdown), through a pager on a terminal; without a page, list what there is.

    docs/plugins/tutorial.md, plugins/tutorial and tutorial are the same page.

    \b
    rpl docs
    rpl docs tutorial
    """
    pages, output = installed_pages(), session_of(context).output
    if page is None:
        output.table(("PAGE", "TITLE"), [(name, _title(path)) for name, path in pages.items()])
        return
    found = pages[_named(page, tuple(pages))]
    if only_path:
        output.line(str(found))
    else:
        click.echo_via_pager(found.read_text(encoding="utf-8"))


def installed_pages() -> dict[str, Path]:
    """Name -> file: those of the wheel, or of the checkout that the core runs from."""
    import rpl_core

    package = Path(rpl_core.__file__).resolve().parent
    root = package / "pages" if (package / "pages").is_dir() else package.parent
    top = {path.stem: path for path in sorted(root.glob("[A-Z]*.md")) if path.stem != "AGENTS"}
    pages = sorted((root / "docs").rglob("*.md"), key=lambda path: path.relative_to(root).as_posix())
    return top | {_short(path.relative_to(root / "docs").as_posix()): path for path in pages}


def _named(asked: str, names: tuple[str, ...]) -> str:
    wanted = "/" + _plain(_short(asked.partition("#")[0].removeprefix("docs/")))
    same = [name for name in names if f"/{_plain(name)}" == wanted]
    found = same or [name for name in names if _plain(name).endswith(wanted)]
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"no page is called {asked!r}{did_you_mean(asked, names)}", next_step="`rpl docs` lists the pages"
    )


def _short(name: str) -> str:
    return name.removesuffix(".md").removesuffix("/index")


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _title(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line[2:] for line in lines if line.startswith("# ")), "")
