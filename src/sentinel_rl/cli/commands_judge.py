"""The sub-commands that judge trained policies: what they take. The work is imported only when one of them runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentinel_rl.cli.arguments import PolicyArgument, RecalibrateOption, TrustOption
from sentinel_rl.errors import UsageError

PoliciesArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or files or names of saved policies.")
]
FiguresOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Folder for the files; without it the run's own, where RUN is one folder."
    ),
]


def evaluate(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="The folder of a run, the file or name of a saved policy, or one that needs no training.",
        ),
    ],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes per seed.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes; choose one that was not trained on.")] = 1_000_000,
    on: Annotated[
        str | None, typer.Option(metavar="ENV", help="Another environment of the same sizes, such as highway-env.")
    ] = None,
    gamma: Annotated[float | None, typer.Option(min=0, max=1, help="Discount; the task's own if absent.")] = None,
    env: Annotated[str | None, typer.Option(help="The environment of a policy that needs no training.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="An option of a policy that needs no training."),
    ] = None,
    trust: TrustOption = False,
    recalibrate: RecalibrateOption = None,
) -> None:
    """Evaluate the trained policies of a run, without exploration; writes eval.json and eval.csv into its folder.

    Of a saved policy, or one that comes with the library (`highway-neutral`, `highway-composite`), the table is printed
    and no file is written.

    `--on highway-env` plays policies that were trained on the twin in the original, with the twin's settings (needs
    `pip install 'sentinel-rl[highway]'`).

    With `--env`, RUN is the name of a policy that needs no training: `random`, `constant`, and on the highway
    `highway-rule` (drives by seven numbers on the observation) and `highway-search` (plans with the exact model). Their
    table is printed, and no file is written.

    **Examples**

    - `sentinel eval runs/pole`
    - `sentinel eval runs/pole --episodes 100 --seed 7`
    - `sentinel eval runs/road --on highway-env --episodes 50`
    - `sentinel eval highway-composite --episodes 200`
    - `sentinel eval highway-rule --env sentinel/highway-v1 --episodes 200`
    - `sentinel eval constant --set action=SLOWER --env sentinel/highway-v1`
    """
    from sentinel_rl.cli.evaluate import run, run_named

    if env is None:
        if settings:
            raise UsageError("--set is for a policy that needs no training: a run keeps its options. Or give --env")
        run(path, episodes, seed, on, gamma, trust, recalibrate)
        return
    if recalibrate is not None:
        raise UsageError("--recalibrate corrects the laws of a trained agent: a policy that needs no training has none")
    if on is not None or path.is_dir():
        raise UsageError(f"--env is for a policy that needs no training: to play the run {path} elsewhere, use --on")
    run_named(str(path), env, settings or [], episodes, seed, gamma)


def frontier(
    paths: PoliciesArgument,
    risk: Annotated[
        Literal["crash", "tail"], typer.Option(help="Share of terminated episodes, or worst quarter of the returns.")
    ] = "tail",
    gain: Annotated[
        Literal["return", "value", "speed"], typer.Option(help="What is weighed against it; speed on the highway.")
    ] = "return",
    alphas: Annotated[
        str, typer.Option(metavar="LIST", help="Levels of CVaR, of both measures, where RUN is one.")
    ] = "0.05,0.1,0.25,0.5,0.75,1",
    episodes: Annotated[int, typer.Option(min=2, help="Episodes per seed and policy.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes.")] = 1_000_000,
    on: Annotated[str | None, typer.Option(metavar="ENV", help="Another environment of the same sizes.")] = None,
    out: FiguresOption = None,
    trust: TrustOption = False,
) -> None:
    """Weigh risk against gain: one point per policy, with intervals, and dominated points marked.

    Of one RUN the trained agents are given other levels of CVaR, without training. Of several, each is played as it was
    trained. Neighbours are compared episode by episode; where they do not differ, it says how many episodes would show
    a difference of the size that was found. Writes frontier.csv, .json, .png and .svg.

    **Examples**

    - `sentinel frontier runs/pole`
    - `sentinel frontier highway-composite --risk crash --gain speed --on sentinel/highway-dense-v1 --out dense`
    - `sentinel frontier runs/neutral runs/careful --risk crash --out both`
    """
    from sentinel_rl.cli.frontier import run

    run(paths, risk, gain, alphas, episodes, seed, on, out, trust)


def stress(
    paths: PoliciesArgument,
    split: Annotated[
        Literal["all", "calibration", "test"],
        typer.Option(help="Which scenarios; while anything is being chosen, look at calibration alone."),
    ] = "all",
    strengths: Annotated[
        str, typer.Option(metavar="LIST", help="Of every scenario, above 0 and at most 3.5.")
    ] = "1,2,3",
    episodes: Annotated[int, typer.Option(min=2, help="Episodes per seed, scenario and strength.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes.")] = 1_000_000,
    out: FiguresOption = None,
) -> None:
    """Drive in all scenarios of the highway: traffic that training does not have.

    RUN was trained on the highway, or is a driver that needs no training (`highway-rule`, `highway-search`). Several
    are shown side by side, in the same episodes. Calibration scenarios may be used to choose options; test scenarios
    are for the final report. Writes stress.csv, .json, .png and .svg.

    **Examples**

    - `sentinel stress runs/road`
    - `sentinel stress highway-neutral highway-composite --episodes 300 --out stress`
    - `sentinel stress runs/road --split calibration --strengths 0.5,1,1.5`
    """
    from sentinel_rl.cli.stress import run

    run(paths, split, strengths, episodes, seed, out)


def calibrate(
    path: PolicyArgument,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to fit the map, and as many others to judge.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes; choose one that was not trained on.")] = 2_000_000,
    on: Annotated[
        str | None, typer.Option(metavar="ENV", help="Judge in another environment of the same sizes.")
    ] = None,
    seed_index: Annotated[int, typer.Option(help="Which of the run's seeds, counted from 0.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files.", show_default="the run's, or here")
    ] = None,
    trust: TrustOption = False,
) -> None:
    """Judge predicted return distributions by what really followed, and fit a map that corrects them.

    Reports how often returns fell below the predicted 5, 10 and 25 %, CRPS and PIT, of every member and of the mixture,
    on held-out episodes, before and after recalibration. Where the agent learns through the time limit, episodes are
    played on behind it. Writes NAME.json (with the map, for `--recalibrate` of `assess` and `eval`), .csv, .png and
    .svg, with the NAME calibration_seed_N, or POLICY_calibration for a saved policy.

    **Examples**

    - `sentinel calibrate runs/pole`
    - `sentinel calibrate highway-composite --episodes 200 --out results`
    - `sentinel assess highway-composite --recalibrate results/highway-composite_calibration.json`
    """
    from sentinel_rl.cli.calibrate import run

    run(path, episodes, seed, on, seed_index, out, trust)


def abstain(
    path: PolicyArgument,
    fallback: Annotated[str, typer.Option(metavar="NAME", help="A policy without training: constant, random, ...")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the fallback.")
    ] = None,
    on: Annotated[
        str | None, typer.Option(metavar="ENV", help="Another environment of the same sizes; its states are unseen.")
    ] = None,
    score: Annotated[
        str, typer.Option(metavar="epistemic|disagreement", help="What says that the agent does not know.")
    ] = "epistemic",
    coverage: Annotated[
        str, typer.Option(metavar="LIST", help="Shares of the decisions that the agent keeps.")
    ] = "1,0.99,0.95,0.9,0.8,0.5",
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to set thresholds, and as many per arm.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes; choose one that was not trained on.")] = 2_000_000,
    seed_index: Annotated[int, typer.Option(help="Which of the run's seeds, counted from 0.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files.", show_default="the run's, or here")
    ] = None,
    trust: TrustOption = False,
) -> None:
    """Find out whether an agent knows when it should not act, and what handing over to a fallback buys.

    Prints the AUROC of the score for what comes soon and for unseen states, and plays episodes in which the fallback
    decides wherever the score exceeds a threshold, against as many hand-overs at random. Writes NAME.json, .csv, .png
    and .svg, with the NAME abstain_seed_N, or POLICY_abstain for a saved policy.

    **Examples**

    - `sentinel abstain runs/pole --fallback random`
    - `sentinel abstain runs/pole --fallback constant --set action=0 --coverage 1,0.9`
    """
    from sentinel_rl.cli.abstain import run

    run(path, fallback, settings or [], on, score, coverage, episodes, seed, seed_index, out, trust)
