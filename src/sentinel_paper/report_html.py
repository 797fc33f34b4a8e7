"""The report as one HTML page without anything from elsewhere: a figure, the claims as a table, and every result.

What the results say is text, whatever it looks like: it is escaped, numbers are JSON in a block that is not a script,
figures are images, in which scripts do not run, and the page's own policy lets nothing run but its own scripts.
"""

import base64
import gzip
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from sentinel_paper import output
from sentinel_paper.claims import Verdict
from sentinel_paper.report_frontier import Frontier, sentences
from sentinel_paper.report_rows import BEYOND, BEYOND_WORDS, anchor, parted, side_by_side, size
from sentinel_paper.statements import NO_PRESETS, NOT_RUN, Judged, Judgement, presets_of
from sentinel_rl.viewer.page import embedded, security_policy

SCRIPTS = ("dom.js", "charts.js", "frontier.js", "curves.js", "figures.js", "tables.js", "claims.js", "page.js")
_CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "fails",
    Verdict.UNDECIDED: "undecided",
    NOT_RUN: "missing",
    NO_PRESETS: "missing",
}
_METHOD = "How verdicts are computed"
_NUMBER = re.compile(r"[-+−±]?\.?\d[^a-zA-Z]*")
_INTERVAL, _BACK = re.compile(r"(\[[^\]]*\])$"), r'<span class="ci">\1</span>'
# Longer cells may be broken into lines.
_LONG_CELL = 36
Page = Mapping[str, Any]
Charts = Mapping[str, Sequence[Mapping[str, Any]]]


def html_page(
    words: tuple[str, str, str],
    judged: Sequence[Judged],
    pages: Sequence[Page],
    figures: Mapping[str, str],
    drawn: Frontier,
    charts: Charts,
) -> str:
    """The page.

    Args:
        words: title, opening and method.
        judged: every claim.
        pages: of all results.
        figures: SVG by folder and name.
        drawn: the figure that the page begins with.
        charts: learning curves by the folder of their page, none where a result has no such file.
    """
    title, opening, method = words
    style, scripts = _part("page.css"), [_part(name) for name in SCRIPTS]
    compared = side_by_side(pages)
    papers, studies = parted(pages)
    contents = [
        ("claims", "Every claim", ""),
        *((f"compared-{place}", f"{name}: side by side", "") for place, (name, _) in enumerate(compared)),
        *((anchor(page), page["title"], str(page["options"].get("preset", ""))) for page in papers),
        *([("beyond", BEYOND, "")] if studies else []),
        *((anchor(page), page["title"], "") for page in studies),
        ("method", _METHOD, ""),
    ]
    body = [
        '<div class="layout">',
        _opening(title, drawn, judged),
        _contents(contents),
        "<main>",
        _claims(judged, pages, charts),
        *(_compared(place, name, rows) for place, (name, rows) in enumerate(compared)),
        *(_experiment(page, charts.get(page["folder"], ())) for page in papers),
        *([f'<section class="card"><h2 id="beyond">{BEYOND}</h2>{_text(BEYOND_WORDS)}</section>'] if studies else []),
        *(_experiment(page, charts.get(page["folder"], ())) for page in studies),
        f'<section class="card"><h2 id="method">{_METHOD}</h2>{_text(method)}{_text(opening)}</section>',
        "</main>\n</div>",
        "<noscript><p>Charts, figures, filters and sorting need the page's own scripts.</p></noscript>",
    ]
    return Template(_part("page.html")).substitute(
        policy=security_policy(style, scripts),
        title=escape(title),
        style=style,
        body="\n".join(body),
        numbers=embedded({"frontier": drawn.data(), "charts": charts}),
        figures=embedded({name: _packed(figure) for name, figure in figures.items()}),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _opening(title: str, drawn: Frontier, judged: Sequence[Judged]) -> str:
    """The figure, and what was found."""
    found = "".join(f"<li>{_inline(sentence)}</li>" for sentence in sentences(drawn, judged))
    figure = (
        '<h2>Value against crashes in training</h2><figure class="frontier" id="frontier"><figcaption class="small">'
        "Bars are 95 % bootstrap intervals over runs, of the paper's points its standard errors. Point at an agent, or "
        "use Tab and the arrow keys, to see its numbers; the buttons hide a group.</figcaption></figure>"
    )
    return (
        f'<div class="opening"><header class="top"><h1>{escape(title)}</h1>'
        "<p>The experiments of the SENTINEL paper (UAI 2022), run again, and what they say about every claim.</p>"
        f'</header>\n<section class="card hero">'
        + (f"<div>{figure}{_points(drawn)}</div>" if drawn.groups else "")
        + f'<div><h2>What was found</h2><ol class="found">{found}</ol></div></section></div>'
    )


def _points(drawn: Frontier) -> str:
    """The numbers of the figure as a table."""
    rows = [
        {"agent": point.agent, "from": group.words, "value": point.value.told(2), "crashes": point.crashes.told(1)}
        for group in drawn.groups
        for point in group.points
    ]
    return f'<details class="fold"><summary>The numbers of the figure</summary>{_table(rows)}</details>'


def _contents(entries: Sequence[tuple[str, str, str]]) -> str:
    links = "".join(
        f'<li><a href="#{target}">{escape(words)}'
        + (f' <span class="preset">({escape(preset)})</span>' if preset else "")
        + "</a></li>"
        for target, words, preset in entries
    )
    return (
        f'<nav class="contents" aria-label="Contents"><details open><summary>Contents</summary><ul>{links}</ul>'
        "</details></nav>"
    )


def _claims(judged: Sequence[Judged], pages: Sequence[Page], charts: Charts) -> str:
    """The claims with their filters; a claim opens to its figure, numbers and commands."""
    presets = presets_of(pages)
    heads = "".join(f'<th scope="col">{escape(words)}</th>' for words in ("claim", "verdict", *presets, "in the paper"))
    columns = len(presets) + 3
    parts = list(dict.fromkeys(one.statement.part for one in judged))
    verdicts = {judgement.verdict for one in judged for judgement in (one.headline, *one.by_preset.values())}
    choices = [one for one in _CLASSES if one in verdicts and one != NO_PRESETS]
    buttons = "".join(
        f'<button type="button" data-verdict="{value}" aria-pressed="{"false" if value else "true"}">{words}'
        '<span class="count"></span></button>'
        for value, words in (("", "all"), *((choice, choice) for choice in choices))
    )
    return (
        '<section class="card" id="claims"><h2>Every claim</h2>\n'
        f'<div class="filters" hidden><fieldset><legend class="small">Verdict</legend>{buttons}</fieldset>'
        f"{_select('preset', 'Preset', 'each once', presets)}{_select('section', 'Section', 'all', parts)}</div>\n"
        '<p class="shown" role="status"></p>\n'
        f'<table class="claims"><thead><tr>{heads}</tr></thead>\n'
        + "\n".join(_claim(one, columns, charts) for one in judged)
        + "\n</table></section>"
    )


def _select(name: str, label: str, everything: str, values: Sequence[str]) -> str:
    options = "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)
    return f'<label>{label} <select name="{name}"><option value="">{everything}</option>{options}</select></label>'


def _claim(one: Judged, columns: int, charts: Charts) -> str:
    statement = one.statement
    cells = "".join(
        f'<td class="verdict {_CLASSES[judgement.verdict]}" data-preset="{escape(preset)}">{_verdict(judgement)}</td>'
        for preset, judgement in {"": one.headline, **one.by_preset}.items()
    )
    return (
        f'<tbody id="claim-{statement.name}" data-section="{escape(statement.part)}"><tr>'
        f'<td class="claim">{escape(statement.text)}</td>{cells}<td class="where">{escape(statement.where)}</td></tr>'
        f'<tr class="more"><td colspan="{columns}"><details><summary>Numbers, figure and command</summary>'
        f"{_decided(one, charts)}</details></td></tr></tbody>"
    )


def _verdict(judgement: Judgement) -> str:
    """A verdict that links to the first result it follows from."""
    if not judgement.pages or judgement.verdict == NOT_RUN:
        return escape(judgement.verdict)
    return f'<a href="#{anchor(judgement.pages[0])}">{escape(judgement.verdict)}</a>'


def _decided(one: Judged, charts: Charts) -> str:
    """What decides a claim: under every preset its findings, their results and commands; then the first figure."""
    parts = [f'<p class="small">Cited as <code>{escape(one.statement.name)}</code>.</p>']
    shown: dict[str, Page] = {}
    judgements = one.by_preset if one.without_presets is None else {"": one.without_presets}
    for preset, judgement in judgements.items():
        under, option = (f"{escape(preset)}: ", f" --preset {preset}") if preset else ("", "")
        parts.append(f'<h4>{under}<span class="{_CLASSES[judgement.verdict]}">{escape(judgement.verdict)}</span></h4>')
        findings = "".join(
            f'<li><span class="{_CLASSES[finding["verdict"]]}">{escape(finding["verdict"])}</span>, '
            f"{escape(finding['setting'])}: {escape(finding['effect'])}"
            f'<span class="reason">{_inline(finding["reason"])}</span></li>'
            for finding in judgement.findings
        )
        parts.append(f'<ul class="effects">{findings}</ul>' if findings else "")
        there = {page["name"]: page for page in judgement.pages}
        for name in one.statement.claims():
            page = there.get(name)
            command = page["command"] if page is not None else f"sentinel reproduce {name}{option}"
            source = (
                f'From <a href="#{anchor(page)}">{escape(page["folder"])}</a>, {escape(size(page))}:'
                if page is not None
                else "Not run yet:"
            )
            parts.append(f'<p class="small">{source}</p><code class="command">{escape(command)}</code>')
        shown = shown or there
    parts += [_drawing(page, charts.get(page["folder"], ())) for page in shown.values()]
    return "\n".join(part for part in parts if part)


def _drawing(page: Page, charts: Sequence[Any]) -> str:
    """The learning curves of a page, or its figure where there are none."""
    if charts:
        return f'<div data-charts="{escape(page["folder"])}"></div>'
    return _figure(f"{page['folder']}/{page['name']}", page["title"])


def _compared(place: int, name: str, rows: Sequence[Mapping[str, str]]) -> str:
    return (
        f'<section class="card"><h2 id="compared-{place}">{escape(name)}: side by side</h2>\n'
        f"<p>{len(rows)} rows, our numbers of every result.</p>\n{_table(rows)}</section>"
    )


def _experiment(page: Page, charts: Sequence[Any]) -> str:
    folder, findings = page["folder"], page["findings"]
    figure = _figure(f"{folder}/{page['name']}", page["title"])
    parts = [
        f'<section class="card"><h2 id="{anchor(page)}">{escape(page["title"])}'
        f"<small>{escape(page['where'])}; {escape(size(page))}; {escape(folder)}</small></h2>",
        _text(page.get("answer", "")),
        _text(page["setup"]),
        _drawing(page, charts),
        _table(page["results"]),
        _text(page["words"]),
        f'<p class="small">Made with sentinel-rl {escape(page["version"])} by</p>'
        f'<code class="command">{escape(page["command"])}</code>',
        _fold(f"{output.CLAIMS} ({len(findings)})", "\n".join(map(_finding, findings))),
        _fold("The figure that the command writes", figure) if charts else "",
    ]
    for section in page["sections"]:
        inside = [_text(section["words"]), _table(section["rows"]) if section["rows"] else ""]
        inside.append(_figure(f"{folder}/{section['figure']}", section["title"]) if section["figure"] else "")
        parts.append(_fold(section["title"], "\n".join(inside)))
    return "\n".join(part for part in [*parts, "</section>"] if part)


def _fold(summary: str, inside: str) -> str:
    return f'<details class="fold"><summary>{escape(summary)}</summary>{inside}</details>'


def _finding(finding: Mapping[str, str]) -> str:
    verdict = finding["verdict"]
    return (
        f"<blockquote>{escape(finding['claim'])} ({escape(finding['where'])})</blockquote>\n"
        f'<p><span class="{_CLASSES[verdict]}">{escape(verdict.capitalize())}</span>, {escape(finding["setting"])}: '
        f"{_inline(finding['reason'])}</p>"
    )


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    head = "".join(f'<th scope="col"{_kind(cell)}>{escape(column)}</th>' for column, cell in rows[0].items())
    body = "\n".join(f"<tr>{''.join(map(_cell, row.values()))}</tr>" for row in rows)
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table">'
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(value: str) -> str:
    """A cell; the interval of a number stands back."""
    kind = _kind(value)
    words = _inline(value)
    return f"<td{kind}>{_INTERVAL.sub(_BACK, words) if 'num' in kind else words}</td>"


def _kind(value: str) -> str:
    kind = "num" if _NUMBER.fullmatch(value) else "long" if len(value) > _LONG_CELL else ""
    return f' class="{kind}"' if kind else ""


def _figure(name: str, title: str) -> str:
    """The place of a figure, which the page fills with an image."""
    words = "The figure is unpacked by the page's script."
    return (
        f'<figure class="waiting" data-figure="{escape(name)}" data-title="{escape(title)}">'
        f"<figcaption>{words}</figcaption></figure>"
    )


def _packed(figure: str) -> str:
    """A figure as the page unpacks it; the same bytes every time."""
    return base64.b64encode(gzip.compress(figure.encode(), mtime=0)).decode()


def _text(words: str) -> str:
    """Paragraphs."""
    return "\n".join(f"<p>{part}</p>" for part in _inline(words).split("\n\n") if part.strip())


def _inline(words: str) -> str:
    """Text with Markdown's code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words, quote=False))


@cache
def _part(name: str) -> str:
    return (files("sentinel_paper") / "report_page" / name).read_text(encoding="utf-8")
