"""The library's own sub-commands: what they take. The work is imported only when one of them runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentinel_rl.errors import UsageError

OutOption = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder for the files; made if it is not there.", show_default=True)
]


def demo(
    out: OutOption = Path("results/demo"),
    risk: Annotated[bool, typer.Option("--risk", help="Only the Gaussian examples, in full: a few seconds.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Train a small agent for a moment only.")] = False,
) -> None:
    """Show in a minute what composite risk is, and what an agent that uses it knows.

    Prints a table of the paper's Gaussian example, trains SENTINEL-4 on CartPole, explains one of its decisions in a
    table and a picture, and writes a page that shows two episodes with the reasons of every decision.

    **Examples**

    - `sentinel demo`
    - `sentinel demo --risk --out pictures`
    """
    from sentinel_rl.cli import demo

    if risk:
        demo.show_risk(out)
    else:
        demo.show_risk_briefly()
        demo.show_agent(out, quick)


def risk(
    measure: Annotated[str, typer.Argument(metavar="MEASURE", help="For example cvar:0.25, or two joined by ' o '.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV: a header, then numbers; - is stdin.")],
) -> None:
    """Assess the columns of a CSV file: each column holds samples of a return, higher is better.

    One measure gives one number per column. Two measures joined by `o` (left: across models, right: within
    each) take the columns as equally likely models of the same return and give its composite risk.

    **Examples**

    - `sentinel risk cvar:0.25 returns.csv`
    - `sentinel risk "cvar:0.25 o cvar:0.25" models.csv`
    - `sentinel risk "additive o wang:0.1" models.csv`
    """
    from sentinel_rl.cli.risk import run

    run(measure, file)


def cache(
    action: Annotated[
        Literal["show", "clear"], typer.Argument(metavar="show|clear", help="Look at it, or remove all of it.")
    ] = "show",
) -> None:
    """Show or clear the compiled programs that are kept between processes, in a folder of yours.

    Training and evaluating start faster the second time. The environment variable SENTINEL_COMPILATION_CACHE=off
    switches it off; JAX's own JAX_COMPILATION_CACHE_DIR, where set, is respected and never cleared.

    **Examples**

    - `sentinel cache`
    - `sentinel cache clear`
    """
    from sentinel_rl.cli import info

    info.cache(action)


def doctor() -> None:
    """Print versions, devices and commands: what to send along with a question.

    **Examples**

    - `sentinel doctor`
    """
    from sentinel_rl.cli import info

    info.doctor()


RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder that `sentinel train --out` was given.")]
PolicyArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run, or the file or name of a saved policy.")
]


def train(
    env: Annotated[str, typer.Option(help="A Gymnasium name; one with a JAX form trains compiled.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the run.")],
    steps: Annotated[int, typer.Option(min=1, help="Environment steps per seed.")] = 100_000,
    seeds: Annotated[str, typer.Option(metavar="N|LIST", help="5 means 0 to 4; or a list: 3,7,9.")] = "1",
    agent: Annotated[
        str, typer.Option(metavar="NAME", help="sentinel, cdqn, vdqn, vdqn-cvar, uadqn, random, ...")
    ] = "sentinel",
    k: Annotated[int | None, typer.Option("--k", help="Members of the ensemble.", show_default="4")] = None,
    aleatory: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="Risk of each member's law.", show_default="cvar:0.25")
    ] = None,
    epistemic: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="Risk across the members.", show_default="cvar:0.25")
    ] = None,
    lam: Annotated[
        float | None, typer.Option(help="FTRL's parameter; 0 weighs all members equally.", show_default="1.0")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="paper|learner", help="The constants of the paper, or one that learns.", show_default="paper"
        ),
    ] = None,
    reading: Annotated[
        str | None,
        typer.Option(metavar="sound|literal", help="How open places of the paper are read.", show_default="sound"),
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="Discount to learn with.", show_default="0.99")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other option; may be repeated.")
    ] = None,
    save_every: Annotated[int, typer.Option(min=1, help="Steps between two checkpoints.")] = 20_000,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew where a run is.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No bar and no table.")] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for TensorBoard's scalars (needs tensorboardX).")
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="File for the same scalars as CSV.")] = None,
    evaluate_every: Annotated[
        int | None, typer.Option(min=1, help="Steps between evaluations; the best policy of each seed is kept.")
    ] = None,
    evaluate: Annotated[int, typer.Option(min=1, help="Episodes of such an evaluation.")] = 20,
    strict_support: Annotated[
        bool, typer.Option("--strict-support", help="Stop where returns do not fit into the support.")
    ] = False,
) -> None:
    """Train an agent, SENTINEL or another, one run per seed; the same command resumes a run that was interrupted.

    Ctrl-C saves and stops (exit code 75); a run in which a number is not finite fails alone (exit code 5, or 4 where it
    was the only one). The folder gets checkpoints, the episodes of every seed and, at the end, its
    policy.

    **Examples**

    - `sentinel train --env CartPole-v1 --seeds 5 --out runs/pole`
    - `sentinel train --env CartPole-v1 --k 8 --aleatory wang:0.1 --out runs/wang`
    - `sentinel train --env CartPole-v1 --set batch=64 --set hidden=64,64 --out runs/wide`
    - `sentinel train --env CartPole-v1 --agent uadqn --set aversion=0.5 --out runs/uadqn`
    """
    from sentinel_rl.agents.registry import agent_names
    from sentinel_rl.cli.options import parse_seeds, parse_settings
    from sentinel_rl.cli.train import run

    if agent not in agent_names():
        raise UsageError(f"--agent {agent}: choose one of {', '.join(agent_names())}")
    measures = {"aleatory": aleatory, "epistemic": epistemic}
    named = {"k": k, **measures, "lam": lam, "preset": preset, "reading": reading, "gamma": gamma}
    given = {name: value for name, value in named.items() if value is not None}
    options = given | parse_settings(settings or [], agent)
    run(
        *(agent, env, steps, parse_seeds(seeds), options, out, overwrite, quiet, tensorboard, csv),
        save_every=save_every,
        strict=strict_support,
        evaluate=evaluate if evaluate_every is not None else 0,
        evaluate_every=evaluate_every,
    )


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
        run(path, episodes, seed, on, gamma)
        return
    if on is not None or path.is_dir():
        raise UsageError(f"--env is for a policy that needs no training: to play the run {path} elsewhere, use --on")
    run_named(str(path), env, settings or [], episodes, seed, gamma)


def assess(
    path: PolicyArgument,
    obs: Annotated[str | None, typer.Option(metavar="NUMBERS", help="What is seen; a fresh start if absent.")] = None,
    seed_index: Annotated[int, typer.Option(help="Which of the run's seeds, counted from 0.")] = 0,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it: .png, .svg or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Explain a decision: per action, how much of its risk is chance and how much is ignorance.

    **Examples**

    - `sentinel assess runs/pole`
    - `sentinel assess runs/pole --obs "0,0,0.1,0" --plot why.png`
    """
    from sentinel_rl.cli.assess import run

    run(path, obs, seed_index, plot, as_json)


def watch(
    path: PolicyArgument,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="The page.", show_default="RUN's name .html, here")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, max=1000, help="Episodes to play.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes.")] = 7,
    first: Annotated[int, typer.Option(min=0, help="Number of the first episode.")] = 0,
    seed_index: Annotated[int, typer.Option(help="Which of the run's seeds, counted from 0.")] = 0,
    on: Annotated[
        str | None, typer.Option(metavar="ENV", help="Another environment of the same sizes, such as highway-env.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the recording as well.")] = None,
) -> None:
    """Watch a trained agent decide: one page with the world, the reasons of every decision, and what if.

    The page is whole in itself: it opens from disk, without a server and without a network, and can be sent to others.

    **Examples**

    - `sentinel watch highway-composite`
    - `sentinel watch runs/road --html road.html --episodes 5 --seed 7`
    - `sentinel watch runs/road --on highway-env`
    """
    from sentinel_rl.cli.watch import run

    run(path, html, episodes, seed, first, seed_index, on, save)


def verify(path: RunArgument) -> None:
    """Train a part of a run again, and prove that every bit of its newest checkpoint comes out.

    Ends with 0 when all bits are equal, with 3 when one differs.

    **Examples**

    - `sentinel verify runs/pole`
    """
    from sentinel_rl.cli.verify import run

    run(path)


PoliciesArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or files or names of saved policies.")
]
FiguresOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Folder for the files; without it the run's own, where RUN is one folder."
    ),
]


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

    run(paths, risk, gain, alphas, episodes, seed, on, out)


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
