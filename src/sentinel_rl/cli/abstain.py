"""``sentinel abstain``: does an agent know when it should not act, and what does handing over buy?"""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from sentinel_rl import plotting
from sentinel_rl.agents.agent import FixedPolicy
from sentinel_rl.agents.registry import fixed_names, make_agent
from sentinel_rl.calibration import Handover, draw_handover, hand_over
from sentinel_rl.cli.calibrate import chosen, write_rows
from sentinel_rl.cli.options import parse_settings
from sentinel_rl.console import note, results
from sentinel_rl.errors import UsageError
from sentinel_rl.scoring import Share
from sentinel_rl.storage.atomic import write_file


def run(
    path: Path,
    fallback: str,
    settings: Sequence[str],
    on: str | None,
    score: str,
    coverage: str,
    episodes: int,
    seed: int,
    seed_index: int,
    out: Path | None,
    trust: bool = False,
) -> None:
    """Compare hand-overs by a score with hand-overs at random, print the tables, and write numbers and figure."""
    coverages = _coverages(coverage)
    agent, stem = chosen(path, seed_index, out, "abstain", trust)
    other = make_agent(fallback, agent.handle, **parse_settings(settings, fallback))
    if not isinstance(other, FixedPolicy):
        raise UsageError(f"--fallback {fallback} must learn first: choose one of {', '.join(fixed_names())}")
    told = hand_over(agent, other, on=on, score=score, coverages=coverages, episodes=episodes, seed=seed)
    if told.constant:
        note(f"the score {score} is the same in all decisions: it can say nothing. Try --score disagreement")
    console = results()
    console.print(_separations(told))
    console.print(_arms(told))
    files = [write_file(stem.with_name(f"{stem.name}.json"), told.to_json()), write_rows(stem, told.rows())]
    with plotting.figure(9.6, 4.4) as drawing:
        draw_handover(drawing, told)
        files += plotting.save(drawing, stem)
    console.print(f"files: {', '.join(map(str, files))}", markup=False, soft_wrap=True)


def _coverages(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"--coverage {text}: give shares above 0 and not above 1, such as 1,0.95,0.9") from None


def _separations(told: Handover) -> Table:
    table = Table(title=f"{told.env}: does {told.score} know?")
    table.add_column("positive cases")
    for name in ("AUROC", "positive", "others"):
        table.add_column(name, justify="right")
    for each in told.separations:
        table.add_row(each.question, f"{each.auroc:.3f}", str(each.positive), str(each.negative))
    return table


def _arms(told: Handover) -> Table:
    table = Table(title=f"{told.played_on}, {told.episodes} episodes per row")
    table.add_column("coverage", justify="right")
    table.add_column("handed over by")
    for name in ("handed over", "ended early", "discounted return"):
        table.add_column(name, justify="right")
    for arm in told.arms:
        ended = Share(*(100 * number for number in arm.terminated))
        table.add_row(
            f"{arm.coverage:g}", arm.by, f"{arm.handed_over:.1%}", f"{_interval(ended, 1)} %", _interval(arm.value, 2)
        )
    return table


def _interval(share: Share, digits: int) -> str:
    return f"{share.share:.{digits}f} ({share.low:.{digits}f} to {share.high:.{digits}f})"
