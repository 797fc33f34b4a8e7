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


TrustOption = Annotated[
    bool, typer.Option("--trust", help="Import the code that the run names, such as wrappers: only if it is yours.")
]
EnvOption = Annotated[
    str | None, typer.Option(help="A Gymnasium name; one with a JAX form trains compiled.", show_default=False)
]
EnvKwargsOption = Annotated[
    list[str] | None,
    typer.Option("--env-kwargs", metavar="NAME=VALUE", help="A setting of the environment, or a JSON object of them."),
]
WrapperOption = Annotated[
    list[str] | None,
    typer.Option("--wrapper", metavar="MODULE:NAME", help="A Gymnasium wrapper of yours; the innermost first."),
]


def train(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the run.")],
    env: EnvOption = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Environment steps per seed.", show_default="100000")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N|LIST", help="5 means 0 to 4; or a list: 3,7,9.", show_default="1")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="sentinel, cdqn, vdqn, vdqn-cvar, uadqn, random, ...", show_default="sentinel"
        ),
    ] = None,
    k: Annotated[int | None, typer.Option("--k", help="Members of the ensemble.", show_default="4")] = None,
    aleatory: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="Risk of each member's law.", show_default="cvar:0.5")
    ] = None,
    epistemic: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="Risk across the members.", show_default="cvar:0.5")
    ] = None,
    lam: Annotated[
        float | None, typer.Option(help="FTRL's parameter; 0 weighs all members equally.", show_default="1.0")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="learner|paper", help="One that learns, or the constants of the paper.", show_default="learner"
        ),
    ] = None,
    reading: Annotated[
        str | None,
        typer.Option(metavar="sound|literal", help="How open places of the paper are read.", show_default="sound"),
    ] = None,
    gamma: Annotated[
        float | None, typer.Option(help="Discount to learn with.", show_default="by the time limit")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other option; may be repeated.")
    ] = None,
    env_kwargs: EnvKwargsOption = None,
    wrapper: WrapperOption = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What to train, as JSON or TOML, or the folder of a run; options win."),
    ] = None,
    trust: TrustOption = False,
    save_every: Annotated[int, typer.Option(min=1, help="Steps between two checkpoints.")] = 20_000,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew where a run is.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No bar and no table.")] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for TensorBoard's scalars (needs tensorboardX).")
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="File for the same scalars as CSV.")] = None,
    wandb: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="Log to this project of Weights & Biases (needs wandb).")
    ] = None,
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
    - `sentinel train --env Acrobot-v1 --wrapper mine.py:Shaped --env-kwargs render_mode=rgb_array --out runs/shaped`
    - `sentinel train --config runs/pole --seeds 5,6,7 --out runs/more`
    """
    from sentinel_rl.cli.request import training_request
    from sentinel_rl.cli.train import run

    measures = {"aleatory": aleatory, "epistemic": epistemic}
    named = {"k": k, **measures, "lam": lam, "preset": preset, "reading": reading, "gamma": gamma}
    typed = {"agent": agent, "steps": steps, "seeds": seeds}
    asked = training_request(typed, env, env_kwargs, wrapper, named, settings, config, trust)
    run(
        *(
            asked.agent,
            asked.env,
            asked.steps,
            asked.seeds,
            asked.options,
            out,
            overwrite,
            quiet,
            tensorboard,
            csv,
            wandb,
        ),
        save_every=save_every,
        strict=strict_support,
        evaluate=evaluate if evaluate_every is not None else 0,
        evaluate_every=evaluate_every,
    )


def sweep(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="File of the study; one that is there is resumed.")],
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="NAME=RANGE", help="0.1..0.9, 1e-4..1e-2:log, 16..256:log, or a|b|c."),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials in all, those of earlier commands counted.")] = 20,
    env: EnvOption = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Environment steps per seed.", show_default="100000")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N|LIST", help="Of every trial: 3 means 0 to 2.", show_default="1")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="sentinel, cdqn, vdqn, ...", show_default="sentinel")
    ] = None,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="What to maximise in the evaluation: return, value or tail.")
    ] = "return",
    evaluate: Annotated[int, typer.Option(min=1, help="Episodes of the evaluation that ends a trial.")] = 20,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of all trials; may be repeated.")
    ] = None,
    env_kwargs: EnvKwargsOption = None,
    wrapper: WrapperOption = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What to train, as for `sentinel train`; options win.")
    ] = None,
    trust: TrustOption = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 0,
) -> None:
    """Search for good options with Optuna; the same command resumes a search that was interrupted.

    Trials whose learning curves stay below the median of the others are stopped early. A trial that was killed is
    tried again. Writes the best options beside the study, as a file for `sentinel train --config`. Needs
    `pip install 'sentinel-rl[optuna]'`.

    **Examples**

    - `sentinel sweep pole.journal --env CartPole-v1 --vary learning_rate=1e-4..1e-2:log --vary "batch=32|64|128"`
    - `sentinel train --config pole.best.json --seeds 5 --out runs/tuned`
    """
    from sentinel_rl.cli.request import training_request
    from sentinel_rl.cli.sweep import run

    typed = {"agent": agent, "steps": steps, "seeds": seeds}
    asked = training_request(typed, env, env_kwargs, wrapper, {}, settings, config, trust)
    run(study, asked, vary or [], trials, metric, evaluate, seed)


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
        run(path, episodes, seed, on, gamma, trust)
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
    trust: TrustOption = False,
) -> None:
    """Explain a decision: per action, how much of its risk is chance and how much is ignorance.

    **Examples**

    - `sentinel assess runs/pole`
    - `sentinel assess runs/pole --obs "0,0,0.1,0" --plot why.png`
    """
    from sentinel_rl.cli.assess import run

    run(path, obs, seed_index, plot, as_json, trust)


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
    trust: TrustOption = False,
) -> None:
    """Watch a trained agent decide: one page with the world, the reasons of every decision, and what if.

    The page is whole in itself: it opens from disk, without a server and without a network, and can be sent to others.

    **Examples**

    - `sentinel watch highway-composite`
    - `sentinel watch runs/road --html road.html --episodes 5 --seed 7`
    - `sentinel watch runs/road --on highway-env`
    """
    from sentinel_rl.cli.watch import run

    run(path, html, episodes, seed, first, seed_index, on, save, trust)


def plot(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, finished or not.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The picture: .png, .svg, or .html with a table.")] = Path(
        "curves.png"
    ),
    metric: Annotated[str, typer.Option(metavar="NAME", help="A column of curves.csv: return, terminations, ...")] = (
        "return"
    ),
) -> None:
    """Draw the learning curves of runs in one picture: means over seeds with 95 % bootstrap intervals.

    **Examples**

    - `sentinel plot runs/pole`
    - `sentinel plot runs/pole runs/wang --out compared.svg`
    - `sentinel plot runs/pole --metric epistemic --out ignorance.html`
    """
    from sentinel_rl.cli.plot import run

    run(paths, out, metric)


def export(
    path: PolicyArgument,
    onnx: Annotated[Path | None, typer.Option(metavar="FILE", help="An ONNX model, for any program.")] = None,
    stablehlo: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A StableHLO program, for JAX on CPU, CUDA and TPU.")
    ] = None,
    seed_index: Annotated[int, typer.Option(help="Which of the run's seeds, counted from 0.")] = 0,
    aleatory: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="Risk of each member's law; the trained one if absent.")
    ] = None,
    epistemic: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="Risk across the members; the trained one if absent.")
    ] = None,
    trust: TrustOption = False,
) -> None:
    """Write a policy as a file that runs without JAX: observation in, action, value and both penalties out.

    The ONNX file is compared with the agent on 1,000 random observations. Needs `pip install 'sentinel-rl[export]'`.

    **Examples**

    - `sentinel export highway-composite --onnx policy.onnx`
    - `sentinel export runs/pole --onnx careful.onnx --aleatory cvar:0.1 --epistemic cvar:0.1`
    - `sentinel export runs/pole --stablehlo policy.bin`
    """
    from sentinel_rl.cli.export import run

    run(path, onnx, stablehlo, seed_index, aleatory, epistemic, trust)


def verify(path: RunArgument) -> None:
    """Train a part of a run again, and prove that every bit of its newest checkpoint comes out.

    Ends with 0 when all bits are equal, with 3 when one differs.

    **Examples**

    - `sentinel verify runs/pole`
    """
    from sentinel_rl.cli.verify import run

    run(path)


def frontier(
    path: PolicyArgument,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes per seed and risk level.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes.")] = 1_000_000,
    trust: TrustOption = False,
) -> None:
    """Give trained agents other risk levels, and draw the mean return against its worst quarter.

    Nothing is trained anew. Writes frontier.csv, .json, .png and .svg into the run's folder.

    **Examples**

    - `sentinel frontier runs/pole`
    """
    from sentinel_rl.cli.evaluate import frontier

    frontier(path, episodes, seed, trust)
