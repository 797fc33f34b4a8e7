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
RecalibrateOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Correct the laws by the map that `sentinel calibrate` wrote.")
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
    keep: Annotated[int, typer.Option(min=1, help="Checkpoints to keep, the newest ones.")] = 2,
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
        keep=keep,
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


def assess(
    path: PolicyArgument,
    obs: Annotated[str | None, typer.Option(metavar="NUMBERS", help="What is seen; a fresh start if absent.")] = None,
    seed_index: Annotated[int, typer.Option(help="Which of the run's seeds, counted from 0.")] = 0,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it: .png, .svg or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
    trust: TrustOption = False,
    recalibrate: RecalibrateOption = None,
) -> None:
    """Explain a decision: per action, how much of its risk is chance and how much is ignorance.

    **Examples**

    - `sentinel assess runs/pole`
    - `sentinel assess runs/pole --obs "0,0,0.1,0" --plot why.png`
    """
    from sentinel_rl.cli.assess import run

    run(path, obs, seed_index, plot, as_json, trust, recalibrate)


def watch(
    path: PolicyArgument,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page, whole in itself.")] = None,
    gif: Annotated[Path | None, typer.Option("--gif", metavar="FILE", help="Write a film of one episode.")] = None,
    mp4: Annotated[Path | None, typer.Option("--mp4", metavar="FILE", help="The same as MP4; extra: film.")] = None,
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write a picture of one decision.")] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the recording.")] = None,
    capture: Annotated[
        Path | None, typer.Option("--capture", metavar="FILE", help="Keep the moment of --decisions as a scene.")
    ] = None,
    do: Annotated[
        str | None, typer.Option(metavar="ACTIONS", help="What is good in the scene.", show_default="by a search")
    ] = None,
    avoid: Annotated[
        str | None, typer.Option(metavar="ACTIONS", help="What is bad in the scene.", show_default="by a search")
    ] = None,
    decisions: Annotated[
        str | None, typer.Option(metavar="FROM-TO", help="Of a film or picture, counted from 1.", show_default="all")
    ] = None,
    width: Annotated[int, typer.Option(min=320, max=3840, help="Of a film or picture, in pixels.")] = 800,
    speed: Annotated[
        float | None, typer.Option(min=0.01, max=100, help="Of a film; 1 is the world's.", show_default=False)
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, max=1000, help="Episodes to play, for a page.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes.")] = 7,
    first: Annotated[int, typer.Option(min=0, help="Number of the first episode.")] = 0,
    seed_index: Annotated[int, typer.Option(help="Which of the run's seeds, counted from 0.")] = 0,
    on: Annotated[
        str | None, typer.Option(metavar="ENV", help="Another environment of the same sizes, such as highway-env.")
    ] = None,
    beside: Annotated[
        list[str] | None, typer.Option("--with", metavar="DRIVER", help="Another driver, live; may be repeated.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the live view; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Live: print the address, open no browser.")] = False,
    trust: TrustOption = False,
) -> None:
    """Watch a trained agent decide: the world, the reasons of every decision, and what if.

    Without a file to write, the view is live, on the highway: a page on this machine alone, where you drive on, take
    another action from any moment, change the traffic and see other drivers beside (needs the extra `watch`). With
    `--html` the page is a file, whole in itself: it opens from disk, without a server, and can be sent to others.

    **Examples**

    - `sentinel watch highway-composite --with highway-rule --with highway-search`
    - `sentinel watch highway-composite --html road.html --episodes 5 --seed 7`
    - `sentinel watch runs/road --gif road.gif --first 11 --decisions 4-18`
    - `sentinel watch runs/road --html road.html --on highway-env`
    - `sentinel watch runs/road --capture scenes/gap.scene.json --decisions 7`
    """
    from sentinel_rl.cli.watch import Files, run, run_live

    files = Files(html, gif, mp4, png, save, capture, do, avoid)
    if any(files):
        if beside or port or no_open:
            raise UsageError("--with, --port and --no-open are of the live view: leave out the files to be written")
        run(path, files, decisions, width, speed, episodes, seed, first, seed_index, on, trust)
    else:
        run_live(path, beside or [], seed, first, seed_index, on, port, not no_open, trust)


def scenes(
    path: PolicyArgument,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SCENES]", help="A folder of scenes, or one; the library's ten highway scenes if absent."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it over training, as .png, .svg or .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Try a trained agent in scenes: moments in which it is known what a good driver would do, or would not.

    Of a run, every checkpoint is tried that was kept, and the policies of its end; `sentinel train --keep 20` keeps 20
    of them. Ends with 0 whether or not all scenes are passed.

    **Examples**

    - `sentinel scenes highway-composite`
    - `sentinel scenes highway-rule`
    - `sentinel scenes runs/road scenes/ --plot scenes.png`
    """
    from sentinel_rl.cli.scenes import run

    run(path, folder, plot, as_json)


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
