"""Table 4: seconds of an experiment on the highway, per agent."""

import dataclasses
from pathlib import Path

from sentinel_paper import trained
from sentinel_paper.claims import Claim, Finding, Verdict, by_name
from sentinel_paper.highway_agents import AGENTS, COMPOSITE
from sentinel_paper.output import Page, Row, publish
from sentinel_paper.settings import HIGHWAY, PRESETS
from sentinel_paper.trained import Execution, GridReport, Settings
from sentinel_paper.trained_page import MEASURED_ONCE, about, seconds
from sentinel_rl import plotting

NAME = "table-compute"
# Seconds of one run of 1e5 steps as printed, on a Tesla T4.
PRINTED = {"CDQN": 10614.0, "UA-DQN": 13748.0, "VDQN": 13069.0, COMPOSITE: 36384.0}
CONTENDERS = tuple(agent for agent in AGENTS if agent.label in PRINTED)
SIMILAR = 2.0
PRINTED_RUNS, HOUR = 20, 3600.0
SETTINGS = Settings()
PAPER = by_name(
    Claim(
        "similar-time",
        "Parameters were chosen such that the overall compute time is similar in most cases.",
        "appendix D.3",
    ),
    Claim("printed-ratio", "SENTINEL-4 takes 36384 s where CDQN takes 10614 s: 3.4 times as long.", "table 4 (D.3)"),
)


@dataclasses.dataclass(frozen=True)
class Records:
    """The records of all runs of an agent at once, and of one run alone."""

    many: trained.Records
    single: trained.Records

    @property
    def settings(self) -> Settings:
        """Those of all runs."""
        return self.many.settings


def run(settings: Settings, report: GridReport, execution: Execution) -> Records:
    """Train the agents: all runs at once, and one alone."""
    many = trained.run(HIGHWAY, CONTENDERS, settings, report, execution, apart=True)
    single = trained.run(HIGHWAY, CONTENDERS, settings, report, execution, seeds=settings.seeds[:1], apart=True)
    return Records(many, single)


def findings(records: Records) -> list[Finding]:
    """Judge by the seconds of all runs at once."""
    took = {label: seconds(record) for label, record in records.many.found.items()}
    setting = f"{records.settings.runs} runs at once"
    told = ", ".join(f"{label} {one:.1f} s" for label, one in took.items())
    fastest, slowest = min(took.values()), max(took.values())
    ratio = took[COMPOSITE] / took["CDQN"]
    return [
        Finding(
            PAPER["similar-time"],
            setting,
            Verdict.of(sum(one <= SIMILAR * fastest for one in took.values()) > len(took) / 2),
            f"{told}: the slowest takes {slowest / fastest:.1f} times as long as the fastest. Similar is taken as "
            f"within a factor of {SIMILAR:g}, for most agents.",
            f"the slowest takes {slowest / fastest:.1f} times as long as the fastest; {MEASURED_ONCE}",
        ),
        Finding(
            PAPER["printed-ratio"],
            setting,
            Verdict.of(abs(ratio - PRINTED[COMPOSITE] / PRINTED["CDQN"]) < 1),
            f"SENTINEL-4 takes {ratio:.1f} times as long as CDQN; the claim is taken as a ratio of 3.4 ± 1.",
            f"{ratio:.1f} times as long; {MEASURED_ONCE}",
        ),
    ]


def render(records: Records, out: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    setup = (
        f"Seconds of training of {records.settings.steps} steps on the highway, compiling not counted: all runs of an "
        "agent at once on one device, and one run alone. Every agent learns with "
        f"{PRESETS[records.settings.preset].learning}. The paper's seconds are of one run on an NVIDIA Tesla T4."
    )
    rows = _rows(records)
    hours = sum(PRINTED[label] * PRINTED_RUNS for label in PRINTED) / HOUR
    ours = sum(seconds(record) for record in records.many.found.values())
    words = (
        f"By the paper's own table {PRINTED_RUNS} runs of these {len(PRINTED)} agents take {hours:.0f} hours; here "
        f"{records.settings.runs} runs of each took {ours:.0f} s in all. Runs of one agent share a compiled program "
        "and fill the device together, so that the seconds of one run alone say little about those of many."
    )
    page = Page(NAME, records.settings, setup, rows, findings(records), words, (), [*about(records.many)])
    with plotting.figure(8, 4) as drawing:
        axes = drawing.subplots()
        axes.barh([row["agent"] for row in rows], [float(row["s per run, all at once"]) for row in rows])
        axes.set(title="seconds of training per run, all runs at once", xlabel="seconds")
        return publish(page, drawing, rows, out)


def _rows(records: Records) -> list[Row]:
    return [
        {
            "agent": label,
            "s per run, all at once": f"{seconds(record) / records.settings.runs:.3f}",
            "s, all runs": f"{seconds(record):.2f}",
            "s, one run alone": f"{seconds(records.single.found[label]):.2f}",
            "s compiling": f"{record.about.get('seconds', {}).get('compiling', 0.0):.1f}",
            "device": str(record.about.get("device", "")),
            "paper: s per run": f"{PRINTED[label]:.0f}",
        }
        for label, record in records.many.found.items()
    ]
