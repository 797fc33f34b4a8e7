"""Draw scores of ignorance inside and outside a coverage gap: ``python docs/assets/ignorance.py`` writes ignorance.png.

An agent of K = 4 with priors learns CartPole for 10 000 steps in the closed world (seed 100). The states are those of
random play in the open one.
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from sentinel_rl import plotting, train
from sentinel_rl.calibration import draw_ignorance, ignorance
from sentinel_rl.envs import make_env

EPISODES, STEPS = 200, 20


def random_play(env: Any) -> tuple[np.ndarray, np.ndarray]:
    """Observations of random play before the pole falls, and whether each is in the gap."""

    def step(carry: Any, key: jax.Array) -> Any:
        state, obs, running = carry
        act_key, step_key = jax.random.split(key)
        following, after = env.step(state, jax.random.randint(act_key, (), 0, env.spec.num_actions), step_key)
        return (following, after.obs, running & ~after.terminated), (obs, env.in_gap(state), running)

    def episode(key: jax.Array) -> Any:
        state, obs = env.reset(key)
        return jax.lax.scan(step, (state, obs, np.bool_(True)), jax.random.split(key, STEPS))[1]

    obs, gap, running = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), EPISODES))
    kept = np.asarray(running).ravel()
    return np.asarray(obs).reshape(-1, obs.shape[-1])[kept], np.asarray(gap).ravel()[kept]


def draw(stem: Path) -> None:
    """Write the figure."""
    options = {"hidden": (64, 64), "prior_scale": 0.3}
    result = train("sentinel", "sentinel/CartPoleGap-v0", 10_000, [100], reports=False, **options)
    agent, state = result.agents[0], result.agent_states[0]
    obs, gap = random_play(make_env("sentinel/CartPoleGapOpen-v0"))
    seen, unseen = (ignorance(agent, obs[part], state=state) for part in (~gap, gap))
    with plotting.figure(11.0, 5.6) as drawing:
        draw_ignorance(drawing, seen, unseen)
        plotting.save(drawing, stem)
    stem.with_suffix(".svg").unlink()


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(""))
