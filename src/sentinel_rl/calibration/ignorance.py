"""What could tell that an agent has never been here: one score per observation and carrier, and how well each tells.

Three scores come from the members of the ensemble: the epistemic penalty, the disagreement of their means, and the
distance between their laws. Three are distances to observations of the training: in the features of the members'
encoders (of the tenth neighbour, and Mahalanobis's), and in the observations themselves, which need no network.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from matplotlib.figure import Figure

from sentinel_rl import plotting
from sentinel_rl.agents.agent import best_action
from sentinel_rl.calibration.samples import MEMBER_SCORES, scores_of
from sentinel_rl.errors import UsageError
from sentinel_rl.explanation import has_laws
from sentinel_rl.replay import Replay
from sentinel_rl.scoring import auroc

Scores = dict[str, Float[np.ndarray, " T"]]
# Observations of the training that distances are measured to, at most.
REFERENCE = 2_000
NEIGHBOURS = 10
_BATCH = 256
# Of the mean variance of the features, added to each: a direction that the training never used has none.
_RIDGE = 1e-3
_BINS = 30


def ignorance(agent: Any, obs: Any, *, state: Any = None, reference: Any = None) -> Scores:
    """How ignorant an agent seems at observations, by every carrier: higher is more ignorant.

    Args:
        agent: of the familiar classes, or one of `sentinel_rl.agents` with its `state`. It must have laws.
        obs: observations, ``[T, obs]``.
        state: of an agent that is not of the familiar classes.
        reference: observations of the training, ``[N, obs]``; the latest of the replay when None. Without either, as of
            a policy from a file, there are only the members' scores.

    Returns:
        ``"epistemic"``, ``"disagreement"`` and ``"laws"`` of the preferred action, and ``"features"``,
        ``"mahalanobis"`` and ``"observations"``, each ``[T]``.

    Raises:
        UsageError: for an agent without laws, or what is no list of observations.
    """
    who, known = _asked(agent, state)
    rows = _rows("obs", obs)
    scores = dict(zip(MEMBER_SCORES, _in_batches(_scores, who, known, rows), strict=True))
    seen = _seen(known) if reference is None else _rows("reference", reference)
    if seen is None:
        return scores
    seen = seen[np.unique(np.linspace(0, len(seen) - 1, min(len(seen), REFERENCE)).astype(int))]
    scores["observations"] = _nearest(*_scaled(rows, seen))
    if hasattr(who.policy(known), "features"):
        there, here = (_in_batches(_features, who, known, part)[0].astype(np.float64) for part in (rows, seen))
        scores["features"] = _nearest(there.reshape(len(there), -1), here.reshape(len(here), -1))
        scores["mahalanobis"] = np.mean([_mahalanobis(there[:, i], here[:, i]) for i in range(here.shape[1])], axis=0)
    return scores


def diversity(agent: Any, obs: Any, *, state: Any = None) -> Scores:
    """How diverse the members of an ensemble are at observations: numbers to plot over training, or over states.

    Returns:
        ``"disagreement"`` and ``"laws"`` as in `ignorance`; ``"relative"``, the distance between the laws over the
        standard deviation of their mixture; ``"preferences"``, the share of the pairs of members that prefer different
        actions by their means; ``"members"``, how many members FTRL's weights leave, ``1 / sum w^2``.
    """
    who, known = _asked(agent, state)
    names = ("disagreement", "laws", "relative", "preferences", "members")
    return dict(zip(names, _in_batches(_diversity, who, known, _rows("obs", obs)), strict=True))


def separations(seen: Mapping[str, Any], unseen: Mapping[str, Any]) -> dict[str, float]:
    """AUROC of every score for "not seen": 1 tells all unseen observations, 0.5 none.

    Args:
        seen: scores at observations like those of the training, as `ignorance` gives them.
        unseen: scores at the others.

    Example:
        >>> separations({"laws": [0.1, 0.2]}, {"laws": [0.15, 0.3]})
        {'laws': 0.75}
    """
    return {
        name: auroc(
            np.concatenate([seen[name], unseen[name]]), np.repeat([False, True], [len(seen[name]), len(unseen[name])])
        )
        for name in seen
    }


def draw_ignorance(drawing: Figure, seen: Mapping[str, Any], unseen: Mapping[str, Any]) -> None:
    """Draw every score's histograms at seen and at unseen observations, with its AUROC."""
    told = separations(seen, unseen)
    columns = min(3, len(told))
    panels = np.atleast_1d(drawing.subplots(-(-len(told) // columns), columns)).ravel()
    for panel, (name, area) in zip(panels, told.items(), strict=False):
        # The few highest scores would leave no room for the others.
        highest = np.quantile(np.concatenate([seen[name], unseen[name]]), 0.99) or 1.0
        edges = np.linspace(0.0, highest, _BINS + 1)
        for scores, colour, label in ((seen, plotting.BLUE, "seen"), (unseen, plotting.RED, "unseen")):
            counts, _ = np.histogram(np.clip(scores[name], 0, highest), edges)
            panel.stairs(counts / counts.sum(), edges, color=colour, label=label, linewidth=2.2)
        panel.set(title=f"{name}: AUROC {area:.2f}", yticks=[], xlim=(0, highest))
    for panel in panels[len(told) :]:
        panel.axis("off")
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _asked(agent: Any, state: Any) -> tuple[Any, Any]:
    """The agent and its state, of either kind."""
    if state is None and not all(hasattr(agent, name) for name in ("agent", "state")):
        raise UsageError(f"{type(agent).__name__} is asked with its state: give state=")
    who, known = (agent.agent, agent.state) if state is None else (agent, state)
    if not has_laws(who):
        raise UsageError(f"{type(who).__name__} has no laws of the return: sentinel and cdqn have some")
    return who, known


def _rows(name: str, given: Any) -> np.ndarray:
    rows = np.asarray(given, np.float32)
    if rows.ndim != 2 or not len(rows) or not np.isfinite(rows).all():
        raise UsageError(f"{name} must be finite numbers of the shape [T, obs] with T > 0, got {rows.shape}")
    return rows


def _seen(state: Any) -> np.ndarray | None:
    """The latest observations of a replay, where there is one that has any."""
    replay = getattr(state, "replay", None)
    if not isinstance(replay, Replay) or not np.any(replay.rows):
        return None
    return np.asarray(replay.latest(min(int(replay.newest) + 1, replay.capacity)).obs)


def _in_batches(ask: Any, agent: Any, state: Any, obs: np.ndarray) -> list[np.ndarray]:
    """Ask in batches of one size, so that one program serves all."""
    found = []
    for start in range(0, len(obs), _BATCH):
        places = np.minimum(np.arange(start, start + _BATCH), len(obs) - 1)
        found.append(jax.device_get(ask(agent, state, jnp.asarray(obs[places]))))
    return [np.concatenate(parts)[: len(obs)] for parts in zip(*found, strict=True)]


@eqx.filter_jit
def _scores(agent: Any, state: Any, obs: Array) -> tuple[Array, ...]:
    def one(seen: Array) -> tuple[Array, ...]:
        belief = agent.belief(state, seen)
        best = best_action(agent.composite(belief))
        return tuple(score[best] for score in scores_of(belief, agent.composite))

    return jax.vmap(one)(obs)


@eqx.filter_jit
def _features(agent: Any, state: Any, obs: Array) -> tuple[Array]:
    return (jax.vmap(agent.policy(state).features)(obs),)


@eqx.filter_jit
def _diversity(agent: Any, state: Any, obs: Array) -> tuple[Array, ...]:
    def one(seen: Array) -> tuple[Array, ...]:
        belief = agent.belief(state, seen)
        best = best_action(agent.composite(belief))
        _, apart, laws = scores_of(belief, agent.composite)
        spread = belief.mixture().std()[best]
        relative = jnp.where(spread > 0, laws[best] / jnp.where(spread > 0, spread, 1.0), 0.0)
        choices = jnp.argmax(belief.members.mean(), axis=-1)
        pairs = choices.size * (choices.size - 1)
        differ = jnp.sum(choices[:, None] != choices[None, :]) / max(pairs, 1)
        return apart[best], laws[best], relative, differ, 1 / jnp.sum(belief.weights[:, best] ** 2)

    return jax.vmap(one)(obs)


def _scaled(rows: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in standard deviations of what was seen; a number that never changed counts as it is."""
    spread = seen.std(axis=0, dtype=np.float64)
    spread[spread == 0] = 1.0
    return rows / spread, seen / spread


def _nearest(rows: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The distance to the tenth of the nearest, or to the farthest of fewer."""
    place = min(NEIGHBOURS, len(seen)) - 1
    squares = np.einsum("nf,nf->n", seen, seen)
    found = []
    for start in range(0, len(rows), _BATCH):
        part = rows[start : start + _BATCH]
        apart = np.einsum("nf,nf->n", part, part)[:, None] - 2 * part @ seen.T + squares[None]
        found.append(np.partition(apart, place, axis=1)[:, place])
    return np.asarray(np.sqrt(np.maximum(np.concatenate(found), 0.0)))


def _mahalanobis(rows: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The distance to the mean of what was seen, in its standard deviations in every direction."""
    centre = seen.mean(axis=0)
    covariance = np.atleast_2d(np.cov(seen, rowvar=False, bias=True))
    level = np.trace(covariance) / len(covariance) or 1.0  # where nothing varies, a plain distance
    covariance += _RIDGE * level * np.eye(len(covariance))
    away = rows - centre
    return np.asarray(np.sqrt(np.einsum("tf,tf->t", away, np.linalg.solve(covariance, away.T).T)))
