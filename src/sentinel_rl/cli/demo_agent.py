"""The second half of ``sentinel demo``: train on CartPole, and ask the agent how sure it is."""

from pathlib import Path
from typing import Any

from sentinel_rl.cli import evaluation, training
from sentinel_rl.cli.console import results
from sentinel_rl.cli.decision import draw, first_observation, show
from sentinel_rl.cli.files import writable_folder
from sentinel_rl.cli.runs import read_run

ABOUT = """\
Four networks, each trained on its own share of what was seen, tell the law of the return of every action. \
aleatory_penalty is what chance costs, epistemic_penalty what the networks' disagreement costs; \
mean - aleatory_penalty - epistemic_penalty = composite, and the action of the highest composite is taken (>).
"""
FULL: dict[str, Any] = {"k": 4, "aleatory": "cvar:0.25", "epistemic": "cvar:0.25"}
QUICK: dict[str, Any] = FULL | {"k": 2, "hidden": (8,), "capacity": 400}


def run(out: Path, quick: bool) -> None:
    """Train, evaluate, explain one decision and draw it."""
    writable_folder(out)
    place, console = out / "pole", results()
    console.print("training SENTINEL on CartPole: the pole is to be kept upright for 500 steps", soft_wrap=True)
    steps, episodes, options = (400, 10, QUICK) if quick else (100_000, 100, FULL)
    training.run(training.configuration_of("CartPole-v1", steps, [0, 1], options), place, overwrite=True)
    evaluation.run(place, episodes, seed=1_000_000)
    agent = read_run(place).policies()[0]
    seen = first_observation(agent)
    why = agent.assess(seen)
    console.print("\nHow sure is it? The first decision of an episode:")
    show(why, seen)
    picture = draw(why, out / "decision.png")
    console.print(ABOUT, soft_wrap=False)
    console.print(f"picture: {picture}\nnext: sentinel assess {place} --obs 0,0,0.1,0", markup=False, soft_wrap=True)
