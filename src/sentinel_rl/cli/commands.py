"""Sub-commands to begin with, and about the installation: what they take. The work is imported when one runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

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
