"""The sub-commands that show or hand on a trained policy: what they take. The work is imported when one runs."""

from pathlib import Path
from typing import Annotated

import typer

from sentinel_rl.cli.arguments import PolicyArgument, RecalibrateOption, TrustOption
from sentinel_rl.errors import UsageError


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
