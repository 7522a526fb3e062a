"""The site, `make site`: the files of docs/, example pages, the command line, and files elsewhere
in the checkout that a page links to. Zensical makes pages of them, offline.
"""

import argparse
import html
import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).parent))
from gallery import Example, examples  # noqa: E402

from attnbench.harness.verbs.app import HOMES, app  # noqa: E402

LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)#\s]+)(#[^)\s]*)?(?=\))")
IN_NAVIGATION = ("README.md", "CHANGELOG.md", "scenarios/README.md")
AS_THEY_ARE = (".png", ".svg", ".css", ".js")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=ROOT / "results" / "reference")
    parser.add_argument("--to", type=Path, default=ROOT / ".site-pages")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        write_sources(work / "sources", examples(given.runs))
        shutil.copy(ROOT / "mkdocs.yml", work)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
        subprocess.run(command, cwd=work, check=True)
        finish(work / "pages")
        shutil.rmtree(given.to, ignore_errors=True)
        shutil.move(work / "pages", given.to)
    print(given.to / "index.html")


def write_sources(folder: Path, shown: list[Example]) -> None:
    docs = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*")]
    kinds = (".md", *AS_THEY_ARE)
    seen, waiting = set(), [*(path for path in docs if path.endswith(kinds)), *IN_NAVIGATION]
    while waiting:  # a page that a page links to may link to others
        path = waiting.pop()
        if path in seen or not (ROOT / path).is_file():
            continue  # what leads to no file is found by --strict
        seen.add(path)
        there = folder / site_path(path)
        there.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(AS_THEY_ARE):
            shutil.copy(ROOT / path, there)
            continue
        text = as_page(path)
        there.write_text(filled(moved(text, path), shown), encoding="utf-8")
        if path.endswith(".md"):
            waiting += (target(path, link) for link, _ in LINK.findall(text))
    (folder / "gallery").mkdir()
    for name, page in (page for one in shown for page in one.pages.items()):
        (folder / "gallery" / name).write_text(page, encoding="utf-8")
    (folder / "cli.md").write_text(command_line(), encoding="utf-8")


def moved(text: str, path: str) -> str:
    """Links as they are in the checkout lead to where the files are in the site."""
    folder = posixpath.dirname(site_path(path))

    def there(link: re.Match[str]) -> str:
        return posixpath.relpath(site_path(target(path, link[1])), folder) + (link[2] or "")

    return LINK.sub(there, text)


def filled(text: str, shown: list[Example]) -> str:
    text = text.replace("<!-- examples -->", "".join(map(entry, shown)))
    for one in shown:
        text = text.replace(f"<!-- answer: {one.name} -->", html.escape(one.answer))
    return text


def finish(pages: Path) -> None:
    """The empty corner of a table is no heading."""
    for path in pages.rglob("*.html"):
        if path.parent.name != "gallery":
            text = path.read_text(encoding="utf-8")
            path.write_text(re.sub(r"<th([^>]*)></th>", r"<td\1></td>", text), encoding="utf-8")


# ---- files of the checkout in the site -----------------------------------------------------------


def site_path(path: str) -> str:
    """docs/ is the site's top; all else of the checkout is under files/, text as a page."""
    inside = path.removeprefix("docs/")
    if inside != path and not path.endswith((".ipynb", ".py")):
        return inside
    return f"files/{path}" if path.endswith((".md", ".png")) else f"files/{path}.md"


def target(origin: str, link: str) -> str:
    """What a link in a file leads to; of a folder its README.md."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    return f"{path}/README.md" if (ROOT / path).is_dir() else path


def as_page(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    if path.endswith(".ipynb"):
        return "\n\n".join(cell_text(cell) for cell in json.loads(text)["cells"])
    kind = {".yaml": "yaml", ".py": "python", ".json": "json"}.get(Path(path).suffix, "text")
    return f"# {path}\n\n````{kind}\n{text}\n````\n"


def cell_text(cell: dict[str, Any]) -> str:
    """A cell of a notebook as Markdown, with what it printed and drew."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    found = [f"```python\n{source}\n```"]
    for output in cell["outputs"]:
        kinds = output.get("data", {})
        if "image/png" in kinds:
            found.append(
                f"![What the cell draws](data:image/png;base64,{kinds['image/png'].strip()})"
            )
        elif "text/html" in kinds:
            found.append("".join(kinds["text/html"]))
        else:
            printed = "".join(output.get("text") or kinds["text/plain"])
            found.append(f"```text\n{printed}\n```")
    return "\n\n".join(found)


def entry(example: Example) -> str:
    """An example in the gallery: its page, small, and what it says."""
    page, title = f"gallery/{example.name}.html", html.escape(example.title)
    small = f'src="{page}" title="{title}, small" loading="lazy" tabindex="-1"'
    lines = (
        f"## {title}",
        html.escape(example.question),
        example.answer and f"**{html.escape(example.answer)}**",
        f'<div class="preview" inert><iframe {small}></iframe></div>',
        f"[Open the page of {title}]({page}) · {example.device} · `{example.command}`",
    )
    return "\n\n".join(filter(None, lines)) + "\n\n"


# ---- the command line ----------------------------------------------------------------------------


def command_line() -> str:
    """Every command with its options, as its help has them."""
    main = typer.main.get_command(app)
    return "\n".join(["# Command line\n", f"{main.help}\n", *commands(main, "attnbench")])


def commands(group: Any, name: str) -> Iterator[str]:
    for word in HOMES:
        one = group.get_command(None, word)
        yield f"## {name} {word}\n\n{plain(one.help or '')}\n"
        yield from options(one)
        yield "".join(f"    {line}\n" for line in one.verb.examples)


def options(command: Any) -> Iterator[str]:
    rows = [one for one in command.params if not getattr(one, "hidden", False)]
    if rows:
        yield "| option | meaning |\n|---|---|"
    for one in rows:
        names = ", ".join([*one.opts, *one.secondary_opts])
        if one.param_type_name == "argument":
            names = one.metavar or one.name.upper()
        elif one.metavar:
            names += f" {one.metavar}"
        yield f"| `{names}` | {plain(getattr(one, 'help', '') or '').replace('|', '&#124;')} |"
    yield ""


def plain(text: str) -> str:
    return html.escape(re.sub(r"\s*\n(?!\n)\s*", " ", text).replace("\\[", "["), quote=False)


if __name__ == "__main__":
    main()
