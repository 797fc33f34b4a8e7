"""The verdict on every statement of the paper: one under each preset, from the pages of the experiments.

The headline of a statement is its verdict under the first preset that its experiments were run with, in the order of
`sentinel_paper.settings.PRESETS`. A statement whose experiments have no presets has one verdict, which is its headline.

A page is the JSON of an experiment's folder, see `output`. Of several pages of an experiment under one preset, one is
used: not a quick one, with the most runs, and of those with the most steps.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sentinel_paper import registry
from sentinel_paper.claims import Verdict, together
from sentinel_paper.registry import HEADLINE_PARTS, Statement
from sentinel_paper.settings import DEFAULT_PRESET, PRESETS

NOT_RUN = "not run"
NO_PRESETS = "–"
Page = Mapping[str, Any]
_PLURALS = {Verdict.HOLDS: "hold", Verdict.FAILS: "do not hold", Verdict.UNDECIDED: "are undecided"}


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The verdict on a statement under one preset.

    Args:
        verdict: a `Verdict`; `NOT_RUN` when an experiment is missing and the others do not refute the statement;
            `NO_PRESETS` when nothing about it depends on a preset.
        pages: of the experiments that decide it, as far as there are any.
        findings: on the claims that it cites, of all pages.
    """

    verdict: str
    pages: Sequence[Page] = ()
    findings: Sequence[Mapping[str, str]] = ()

    @property
    def quick(self) -> bool:
        """Whether it follows from tiny runs, which say nothing."""
        return any(page["quick"] for page in self.pages)

    @property
    def effects(self) -> str:
        """The numbers that decide, with their intervals."""
        return "; ".join(f"{one['setting']}: {one['effect'] or one['reason']}" for one in self.findings)


@dataclasses.dataclass(frozen=True)
class Judged:
    """A statement with its judgements.

    Args:
        statement: of the paper.
        by_preset: the judgement under every preset.
        without_presets: the only judgement of a statement that no preset changes anything about, else None.
    """

    statement: Statement
    by_preset: Mapping[str, Judgement]
    without_presets: Judgement | None = None

    @property
    def headline(self) -> Judgement:
        """The judgement that is counted."""
        return self.by_preset[self.headline_preset] if self.without_presets is None else self.without_presets

    @property
    def headline_preset(self) -> str:
        """The preset under which the statement is counted, `NO_PRESETS` where there are none.

        It is the first with a verdict, and not with one of quick runs if there are others; the default without any.
        """
        if self.without_presets is not None:
            return NO_PRESETS
        run = {preset: one for preset, one in self.by_preset.items() if one.verdict != NOT_RUN}
        # The first of equals: presets are in the order of the headline.
        return min(run, key=lambda preset: run[preset].quick, default=DEFAULT_PRESET)


def judge(pages: Sequence[Page]) -> list[Judged]:
    """Every statement, once, in the order of the paper."""
    presets = presets_of(pages)
    judged = []
    for statement in registry.STATEMENTS:
        if any(registry.find(experiment).grid for experiment in statement.claims()):
            judged.append(Judged(statement, {preset: _judged(statement, pages, preset) for preset in presets}))
        else:
            single = _judged(statement, pages, DEFAULT_PRESET)
            judged.append(Judged(statement, dict.fromkeys(presets, Judgement(NO_PRESETS)), single))
    return judged


def presets_of(pages: Iterable[Page]) -> list[str]:
    """All presets that some page was made with, and the default, in the order of the headline."""
    used = {page["options"].get("preset") for page in pages} - {None}
    order = [*PRESETS, *sorted(used)]
    return [preset for preset in dict.fromkeys(order) if preset in used or preset == DEFAULT_PRESET]


def preference(page: Page) -> tuple[bool, int, int, str]:
    """What pages of one experiment and preset are ordered by, the one to use first."""
    options = page["options"]
    return page["quick"], -options.get("runs", 0), -options.get("steps", 0), page["folder"]


def count_words(verdicts: Iterable[str]) -> str:
    """How many verdicts there are of each kind, in words.

    Example:
        >>> count_words(["holds", "undecided", "holds", "not run"])
        '2 hold, 1 is undecided, 1 is not run yet'
    """
    counts = Counter(verdicts)
    parts = [f"{counts[verdict]} {_plural(verdict, counts[verdict])}" for verdict in Verdict if counts[verdict]]
    if counts[NOT_RUN]:
        parts.append(f"{counts[NOT_RUN]} {'is' if counts[NOT_RUN] == 1 else 'are'} not run yet")
    return ", ".join(parts)


def headline(judged: Sequence[Judged]) -> str:
    """Count the statements of abstract and section 6, each under the preset of its headline; then under the presets."""
    counted = [one for one in judged if one.statement.part in HEADLINE_PARTS]
    heading = Counter(one.headline_preset for one in counted)
    under = [preset for preset in counted[0].by_preset if heading[preset]]
    where = f"under the preset `{under[0]}`"
    if len(under) > 1:
        rest = ", else ".join(f"under `{preset}` ({heading[preset]} of them)" for preset in under[1:])
        where += (
            f" where it was run ({heading[under[0]]} of them), else {rest}; {heading[NO_PRESETS]} depend on no preset"
        )
    words = (
        f"The paper's {' and '.join(HEADLINE_PARTS)} make {len(counted)} claims that an experiment can decide. Each is "
        f"counted once, {where}: {count_words(one.headline.verdict for one in counted)}."
    )
    for preset in [preset for preset in counted[0].by_preset if under != [preset]]:
        verdicts = [one.by_preset[preset].verdict for one in counted]
        run = [verdict for verdict in verdicts if verdict not in (NOT_RUN, NO_PRESETS)]
        if run:
            words += f" Under `{preset}`, which was run for {len(run)} of them, {count_words(run)}."
    return words


def _plural(verdict: Verdict, count: int) -> str:
    if count > 1:
        return _PLURALS[verdict]
    return "is undecided" if verdict == Verdict.UNDECIDED else str(verdict)


def _judged(statement: Statement, pages: Sequence[Page], preset: str) -> Judgement:
    cited = statement.claims()
    used: list[Page] = []
    findings: list[Mapping[str, str]] = []
    missing = False
    for experiment, claims in cited.items():
        page = _page(pages, experiment, preset)
        found = [] if page is None else [one for one in page["findings"] if one["name"] in claims]
        missing |= {one["name"] for one in found} != set(claims)
        used += [] if page is None else [page]
        findings += found
    verdict = together(Verdict(one["verdict"]) for one in findings)
    return Judgement(NOT_RUN if missing and verdict != Verdict.FAILS else str(verdict), used, findings)


def _page(pages: Sequence[Page], experiment: str, preset: str) -> Page | None:
    """The page of an experiment under a preset, or the one it has without any."""
    fitting = [page for page in pages if page["name"] == experiment and page["options"].get("preset", preset) == preset]
    return min(fitting, key=preference, default=None)
