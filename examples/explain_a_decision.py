"""Ask an agent why: train it on CartPole, then explain what it does when the pole leans.

    python examples/explain_a_decision.py --steps 20000 --out why.png

The table has one row per action. The mean is what the members expect on average; the aleatory penalty is what chance
costs, the epistemic penalty what the members' disagreement costs; mean minus both is the composite, which is maximised.
"""

import argparse
from pathlib import Path

import numpy as np

from sentinel_rl import Sentinel

SITUATIONS = {
    "upright": [0.0, 0.0, 0.0, 0.0],
    "leaning right, falling": [0.0, 0.0, 0.15, 0.8],
    "never seen": [2.3, -3.0, -0.2, 3.0],
}


def main() -> None:
    """Train, explain three situations, draw the second, and see what another taste for risk changes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000, help="environment steps of training")
    parser.add_argument("--members", type=int, default=4, help="size of the ensemble, K")
    parser.add_argument("--out", type=Path, default=None, help="where to save the picture")
    args = parser.parse_args()

    agent = Sentinel("MlpPolicy", "CartPole-v0", k=args.members, aleatory="cvar:0.25", epistemic="cvar:0.25", seed=0)
    agent.learn(args.steps, progress_bar=True)
    for name, obs in SITUATIONS.items():
        print(f"\n{name} {obs}\n{agent.assess(np.array(obs))}")

    leaning = np.array(SITUATIONS["leaning right, falling"])
    bold = agent.with_risk(aleatory="expectation", epistemic="expectation")
    print(f"\nwithout regard to risk it would take action {bold.assess(leaning).action}, with regard to it", end=" ")
    print(agent.assess(leaning).action)
    if args.out is not None:
        agent.assess(leaning).plot(args.out)
        print(f"picture: {args.out}")


if __name__ == "__main__":
    main()
