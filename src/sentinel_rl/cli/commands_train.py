"""The sub-commands that train: what they take. The work is imported only when one of them runs."""

from pathlib import Path
from typing import Annotated

import typer

from sentinel_rl.cli.arguments import RunArgument, TrustOption

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
    - `sentinel train --env CartPole-v1 --set layer_norm=true --out runs/normalised`
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


def verify(path: RunArgument) -> None:
    """Train a part of a run again, and prove that every bit of its newest checkpoint comes out.

    Ends with 0 when all bits are equal, with 3 when one differs.

    **Examples**

    - `sentinel verify runs/pole`
    """
    from sentinel_rl.cli.verify import run

    run(path)
