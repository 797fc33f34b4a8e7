"""One HTML page without anything from elsewhere: figures as images, tables that can be sorted.

What the results say is text, whatever it looks like: it is escaped, figures are images, in which scripts do not run,
and the page's own policy lets nothing run but its one script.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sentinel_paper import output
from sentinel_paper.claims import Verdict
from sentinel_paper.report_rows import anchor, claim_rows, finding_rows, side_by_side
from sentinel_paper.report_rows import title as heading
from sentinel_paper.statements import NO_PRESETS, NOT_RUN, Judged

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2, h3 { line-height: 1.2; }
h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin: 1rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .6rem; text-align: left; vertical-align: top; }
th { cursor: pointer; background: #f4f4f4; position: sticky; top: 0; user-select: none; }
th[aria-sort=ascending]::after { content: " \\25B2"; }
th[aria-sort=descending]::after { content: " \\25BC"; }
code { background: #f4f4f4; padding: .1rem .3rem; }
figure { margin: 1rem 0; }
figure img { max-width: 100%; height: auto; }
td.holds, td.fails, td.undecided, td.missing { white-space: nowrap; }
td.holds a, td.fails a, td.undecided a { color: inherit; }
.holds { color: #00684d; font-weight: bold; }
.fails { color: #a33c00; font-weight: bold; }
.undecided { color: #6b5900; font-weight: bold; }
.missing { color: #666; font-style: italic; }
blockquote { margin: 1rem 0 0; padding-left: 1rem; border-left: 3px solid #ccc; font-style: italic; }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #ddd; }
  th, code { background: #2a2a2a; }
  figure { background: #fff; }
  .holds { color: #4fc9a4; } .fails { color: #ff9d66; } .undecided { color: #e6cf4a; }
  .missing { color: #aaa; } a { color: #8ab4f8; }
}
"""
_SCRIPT = """
for (const head of document.querySelectorAll("th")) {
  head.tabIndex = 0;
  const sort = () => {
    const body = head.closest("table").tBodies[0];
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[head.cellIndex].textContent.trim();
    const number = (text) => parseFloat(text.replace(/^[^-+.0-9]*/, ""));
    const compare = (a, b) => {
      const [x, y] = [number(a), number(b)];
      if (Number.isNaN(x) && Number.isNaN(y)) return a.localeCompare(b);
      if (Number.isNaN(x)) return 1;
      return Number.isNaN(y) ? -1 : x - y;
    };
    const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(key(a), key(b)));
    body.append(...rows);
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
}
"""
_CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "fails",
    Verdict.UNDECIDED: "undecided",
    NOT_RUN: "missing",
    NO_PRESETS: "missing",
}
_LINK = re.compile(r"\[([^\]]+)\]\(#([\w-]+)\)")


def html_page(
    words: tuple[str, str, str],
    judged: Sequence[Judged],
    pages: Sequence[Mapping[str, Any]],
    figures: Mapping[str, str],
) -> str:
    """The page: title, opening and method in `words`; `figures` are SVG by folder and name."""
    title, opening, method = words
    links = "".join(f'<li><a href="#{anchor(page)}">{escape(heading(page))}</a></li>' for page in pages)
    body = [
        f"<h1>{escape(title)}</h1>",
        _text(opening),
        "<h2>Every claim</h2>",
        _table(claim_rows(judged)),
        _text(method),
        f"<nav><h2>Results</h2><ul>{links}</ul></nav>",
        *(
            f"<h2>{escape(name)}: side by side</h2>\n<p>{len(rows)} rows, our numbers of every result.</p>\n"
            + _table(rows)
            for name, rows in side_by_side(pages)
        ),
        *(_experiment(page, figures) for page in pages),
        "<h2>Every finding</h2>",
        _table(finding_rows(pages)),
    ]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>',
            f"<style>{_STYLE}</style>\n</head>\n<body>",
            *body,
            f"<script>{_SCRIPT}</script>\n</body>\n</html>\n",
        ]
    )


def _experiment(page: Mapping[str, Any], figures: Mapping[str, str]) -> str:
    folder = page["folder"]
    parts = [
        f'<h2 id="{anchor(page)}">{escape(heading(page))}</h2>',
        f"<p>In the paper: {escape(page['where'])}. Made by <code>{escape(page['command'])}</code> with sentinel-rl "
        f"{escape(page['version'])}; files in <code>{escape(folder)}</code>.</p>",
        _text(page["setup"]),
        _figure(figures, f"{folder}/{page['name']}", page["title"]),
        _table(page["results"]),
        f"<h3>{output.CLAIMS}</h3>",
        *(_finding(finding) for finding in page["findings"]),
        f"<h3>{output.SUMMARY}</h3>",
        _text(page["words"]),
    ]
    for section in page["sections"]:
        parts += [f"<h3>{escape(section['title'])}</h3>", _text(section["words"])]
        parts.append(_table(section["rows"]) if section["rows"] else "")
        parts.append(_figure(figures, f"{folder}/{section['figure']}", section["title"]) if section["figure"] else "")
    return "\n".join(part for part in parts if part)


def _finding(finding: Mapping[str, str]) -> str:
    verdict = finding["verdict"]
    return (
        f"<blockquote>{escape(finding['claim'])} ({escape(finding['where'])})</blockquote>\n"
        f'<p><span class="{_CLASSES[verdict]}">{escape(verdict.capitalize())}</span>, {escape(finding["setting"])}: '
        f"{escape(finding['reason'])}</p>"
    )


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in rows[0])
    body = "\n".join(f"<tr>{''.join(_cell(value) for value in row.values())}</tr>" for row in rows)
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


def _cell(value: str) -> str:
    link = _LINK.fullmatch(value)
    shade = _CLASSES.get(link[1] if link else value)
    return f'<td class="{shade}">{_inline(value)}</td>' if shade else f"<td>{_inline(value)}</td>"


def _figure(figures: Mapping[str, str], name: str, title: str) -> str:
    """A figure as an image."""
    data = base64.b64encode(figures[name].encode()).decode()
    return f'<figure><img alt="{escape(title)}" src="data:image/svg+xml;base64,{data}"></figure>'


def _policy() -> str:
    """What a browser may do with the page: show images that are in it, and use its own style and script."""
    style, script = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (_STYLE, _SCRIPT))
    return f"default-src 'none'; img-src data:; style-src 'sha256-{style}'; script-src 'sha256-{script}'"


def _text(words: str) -> str:
    """Paragraphs."""
    return "\n".join(f"<p>{part}</p>" for part in _inline(words).split("\n\n") if part.strip())


def _inline(words: str) -> str:
    """Text with Markdown's code and its links within the page."""
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words, quote=False))
    return _LINK.sub(r'<a href="#\2">\1</a>', coded)
