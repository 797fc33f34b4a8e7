"""Learning curves of the report: what the page draws is what the experiments wrote."""

import csv
import shutil

import pytest

from sentinel_paper.report import collect
from sentinel_paper.report_curves import MOST_POINTS, charts
from sentinel_rl.errors import CorruptError


@pytest.fixture
def folder(results, tmp_path):
    for name in ("fig-highway-crashes", "fig-toy-wasserstein", "theorems"):
        shutil.copytree(results(name), tmp_path / name)
    return tmp_path


def found(folder):
    return {page["name"]: charts(folder, page) for page in collect(folder)}


def test_every_quantity_and_horizon_is_a_chart(folder):
    drawn = found(folder)
    assert drawn["theorems"] == []
    assert [chart["title"] for chart in drawn["fig-highway-crashes"]] == [
        *("Crashes, 100000 steps", "Return, 100000 steps", "Crashes, 1000000 steps", "Return, 1000000 steps"),
    ]
    (toy,) = drawn["fig-toy-wasserstein"]
    assert (toy["across"], toy["log"]) == ("transitions", True)
    written = (folder / "fig-toy-wasserstein" / "fig-toy-wasserstein-curves.csv").read_text()
    rows = list(csv.DictReader(written.splitlines()))
    drawn_points = [(line["agent"], *point) for line in toy["lines"] for point in line["points"]]
    for row, (agent, *numbers) in zip(rows, drawn_points, strict=True):
        assert agent == row["agent"]
        assert numbers == pytest.approx([float(row[one]) for one in ("transitions", "mean", "low", "high")], rel=1e-4)


def test_long_curves_keep_their_last_point(folder):
    path = folder / "fig-highway-crashes" / "fig-highway-crashes-curves.csv"
    rows = "\n".join(f"100000,CDQN,{step},{step},{step},{step}" for step in range(1, 252))
    path.write_text(f"horizon,agent,steps,mean,low,high\n{rows}\n")
    (chart,) = found(folder)["fig-highway-crashes"]
    (line,) = chart["lines"]
    assert chart["quantity"] == "crashes", "files of earlier versions do not say it"
    assert len(line["points"]) <= MOST_POINTS
    assert line["points"][-1] == [251, 251, 251, 251]


@pytest.mark.attack("bad-report")
@pytest.mark.parametrize(
    "text",
    [
        "agent,steps\nCDQN,1\n",
        "agent,steps,mean,low,high\nCDQN,1,nan,0,0\n",
        "agent,steps,mean,low,high\nCDQN,one,0,0,0\n",
        "horizon,agent,steps,mean,low,high\nlong,CDQN,1,0,0,0\n",
    ],
    ids=["column", "nan", "text", "horizon"],
)
def test_forged_curves_are_refused(text, folder):
    (folder / "fig-highway-crashes" / "fig-highway-crashes-curves.csv").write_text(text)
    with pytest.raises(CorruptError, match=r"fig-highway-crashes-curves\.csv"):
        found(folder)
