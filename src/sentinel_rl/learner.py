"""The familiar class: SENTINEL with the methods that users of reinforcement learning libraries know."""

import dataclasses
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.options import OPTIONS, make_sentinel, require_known
from sentinel_rl.agents.sentinel import SentinelAgent, SentinelState
from sentinel_rl.envs.registry import make_env
from sentinel_rl.envs.spec import Env, EnvSpec
from sentinel_rl.errors import IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.explanation import Explanation
from sentinel_rl.risk import Composite, RiskMeasure, assess
from sentinel_rl.runners.archive import load_archive, read_archive_manifest, save_archive
from sentinel_rl.runners.episodes import EpisodeLog
from sentinel_rl.runners.host import GymnasiumWorld, HostRun, JaxWorld, spec_of
from sentinel_rl.runners.progress import progress_bar as showing
from sentinel_rl.runners.schedule import Every, Plan, Triangular
from sentinel_rl.runners.train import Progress, Training, train

World = str | gymnasium.Env[Any, Any] | Env | EnvSpec | None
Callback = Callable[[dict[str, Any], dict[str, Any]], Any]
_PLAN_OPTIONS = ("learn_every", "warmup", "epsilon_start", "epsilon_end", "epsilon_fraction")


class Sentinel:
    """SENTINEL-K on an environment.

    Args:
        policy: ``"MlpPolicy"``, for the sake of habit.
        env: a Gymnasium name or environment with a Box observation and Discrete actions, or a JAX environment. A name
            that has a JAX twin trains on the twin, compiled whole. An `EnvSpec` makes an agent that cannot learn.
        seed: of all random numbers.
        options: of the agent (see `make_sentinel`: ``k``, ``aleatory``, ``epistemic``, ``lam``, ``preset``, ...) and of
            the course: ``learn_every`` (steps, or ``"triangular"``), ``warmup``, ``epsilon_start``,
            ``epsilon_end``, ``epsilon_fraction``.

    Example:
        >>> agent = Sentinel("MlpPolicy", "CartPole-v1", k=2, hidden=(16,), aleatory="cvar:0.25", seed=0)
        >>> agent.learn(400).num_timesteps
        400
        >>> action, _ = agent.predict(np.zeros(4), deterministic=True)
        >>> agent.assess(np.zeros(4)).probs.shape
        (2, 2, 51)
    """

    def __init__(self, policy: str, env: World, seed: int = 0, **options: Any):
        if policy != "MlpPolicy":
            raise UsageError(f"unknown policy {policy!r}: 'MlpPolicy' is the one there is")
        require_known(options, (*OPTIONS, *_PLAN_OPTIONS))
        self.seed, self.options = seed, options
        self.env, self.spec = _resolve(env)
        self.obs_shape = _obs_shape(self.env, self.spec)
        self.agent = make_sentinel(self.spec, **{k: v for k, v in options.items() if k not in _PLAN_OPTIONS})
        if self.agent.k == 1:
            warnings.warn(
                "with k=1 there is no disagreement: epistemic risk has no effect", SentinelWarning, stacklevel=2
            )
        self.num_timesteps = 0
        self.state: SentinelState = self._init_state()

    def learn(self, total_timesteps: int, callback: Callback | None = None, progress_bar: bool = False) -> Self:
        """Train from the start for exactly this many steps.

        Args:
            total_timesteps: environment steps.
            callback: called as ``callback(locals, globals)`` after every step with ``rewards``, ``dones`` and ``infos``
                among the locals; training stops where it returns False. With one, steps are made one by one.
            progress_bar: show steps, episodes and recent return.
        """
        plan = self._plan(total_timesteps)
        if callback is None and not isinstance(self.env, gymnasium.Env):
            self.state = self._train_many(plan, [self.seed], progress_bar)[0]
            self.num_timesteps = plan.steps
        else:
            self._learn_step_by_step(plan, callback, progress_bar)
        return self

    def learn_many(self, total_timesteps: int, seeds: Iterable[int], progress_bar: bool = False) -> "list[Sentinel]":
        """Train one agent per seed, all at once on a JAX environment; this agent stays as it is."""
        seeds = list(seeds)
        if isinstance(self.env, gymnasium.Env):
            raise UsageError(f"{self.spec.name} has no JAX form, and populations need one: train the seeds one by one")
        plan = self._plan(total_timesteps)
        states = self._train_many(plan, seeds, progress_bar)
        return [
            self._copy(seed=seed, state=state, num_timesteps=plan.steps)
            for seed, state in zip(seeds, states, strict=True)
        ]

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, Any]:
        """Choose actions for one observation or a batch, as NumPy.

        Without `deterministic`, the agent explores with its final epsilon.
        """
        obs, single = self._batch(observation)
        epsilon = 0.0 if deterministic else float(self.options.get("epsilon_end", 0.05))
        self._draws = 0 if deterministic else getattr(self, "_draws", 0) + 1
        keys = jax.random.split(jax.random.fold_in(jax.random.key(self.seed), self._draws), len(obs))
        actions = np.asarray(_act(self.agent, self.state, obs, jnp.float32(epsilon), keys)) + self._first_action
        return (actions[0] if single else actions), state

    def assess(self, observation: Any) -> Explanation:
        """Explain the decision at one observation."""
        obs, single = self._batch(observation)
        if not single:
            raise UsageError(f"assess explains one observation, got a batch of shape {np.shape(observation)}")
        belief = self.agent.belief(self.state.online, jnp.asarray(obs[0]))
        composite = Composite(self.agent.epistemic, self.agent.aleatory, self.agent.aggregate)
        return Explanation(belief, assess(belief, self.agent.epistemic, self.agent.aleatory), str(composite))

    def with_risk(
        self, aleatory: str | RiskMeasure | None = None, epistemic: str | RiskMeasure | None = None
    ) -> "Sentinel":
        """The same trained agent under other risk measures; nothing is trained anew."""
        changed = {"aleatory": aleatory, "epistemic": epistemic}
        return self._copy(options={**self.options, **{k: v for k, v in changed.items() if v is not None}})

    def save(self, path: str | Path) -> Path:
        """Save what is needed to act, as one small file without pickle."""
        about = {"options": _as_json(self.options), "spec": dataclasses.asdict(self.spec), "seed": self.seed}
        path = Path(path)
        path = path if path.suffix else path.with_suffix(".zip")
        return save_archive(path, self.state.online, {**about, "num_timesteps": self.num_timesteps})

    @classmethod
    def load(cls, path: str | Path, env: World = None) -> "Sentinel":
        """Load a saved agent; with an environment, it must be of the size the agent was trained for.

        Raises:
            IncompatibleError: for another environment size, a damaged or a foreign file.
        """
        about = read_archive_manifest(path).about
        saved = EnvSpec(**_from_json(about["spec"]))
        loaded = cls("MlpPolicy", saved, seed=about["seed"], **_from_json(about["options"]))
        if env is not None:
            loaded.env, asked = _resolve(env)
            loaded.obs_shape = _obs_shape(loaded.env, asked)
            if (asked.obs_size, asked.num_actions) != (saved.obs_size, saved.num_actions):
                raise IncompatibleError(
                    f"{path} was trained on {saved.name} ({saved.obs_size} numbers, {saved.num_actions} actions), but "
                    f"{asked.name} has {asked.obs_size} and {asked.num_actions}: give the environment it was trained on"
                )
        networks, _ = load_archive(path, loaded.state.online)
        loaded.state = dataclasses.replace(loaded.state, online=networks, target=networks)
        loaded.num_timesteps = about["num_timesteps"]
        return loaded

    def get_env(self) -> Any:
        """The environment, or None."""
        return self.env

    @property
    def _first_action(self) -> int:
        return int(getattr(self.env.action_space, "start", 0)) if isinstance(self.env, gymnasium.Env) else 0

    def _plan(self, steps: int) -> Plan:
        chosen = {k: self.options[k] for k in _PLAN_OPTIONS if k in self.options}
        every = chosen.pop("learn_every", 100)
        plan = Plan(
            steps, Triangular() if every == "triangular" else Every(every), **{"warmup": self.agent.samples, **chosen}
        )
        if plan.learn_times.size == 0:
            warnings.warn(
                f"no update would be made in {steps} steps: train longer than the warm-up of {plan.warmup}",
                SentinelWarning,
                stacklevel=3,
            )
        return plan

    def _init_state(self) -> SentinelState:
        init_key, _, _ = jax.random.split(jax.random.key(self.seed), 3)
        state: SentinelState = jax.jit(lambda key: self.agent.init(self.spec, key))(init_key)
        return state

    def _train_many(self, plan: Plan, seeds: list[int], shown: bool) -> list[SentinelState]:
        if self.env is None or isinstance(self.env, gymnasium.Env):
            raise UsageError("this agent has no environment to learn in: give it one, Sentinel('MlpPolicy', env)")
        training = Training([self.agent] * len(seeds), self.env, plan, seeds)
        with showing(plan.steps, len(seeds), shown) as show:
            train(training, report=show)
        return training.agent_states()

    def _learn_step_by_step(self, plan: Plan, callback: Callback | None, shown: bool) -> None:
        gym = isinstance(self.env, gymnasium.Env)
        world = GymnasiumWorld(self.env, self.seed) if gym else JaxWorld(self.env)
        run, log = HostRun(self.agent, world, plan, self.seed), EpisodeLog()
        with showing(plan.steps, shown=shown) as show:
            for self.num_timesteps in range(1, plan.steps + 1):
                happened, _, metrics = run.step()
                rewards = np.array([happened.reward])
                dones = np.array([happened.terminated or happened.truncated])
                infos = [{"TimeLimit.truncated": happened.truncated and not happened.terminated}]
                log.extend(rewards, np.array([happened.terminated]), np.array([happened.truncated]))
                if metrics is not None:
                    show(Progress(self.num_timesteps, [log], {}))
                if callback is not None and callback(locals(), globals()) is False:
                    break
            del infos, dones  # only for the callback
        self.state = run.state

    def _batch(self, observation: Any) -> tuple[np.ndarray, bool]:
        """Flatten observations to ``[batch, obs]``, and tell whether there was only one."""
        obs = np.asarray(observation, np.float32)
        if obs.shape in (self.obs_shape, (self.spec.obs_size,)):
            return obs.reshape(1, -1), True
        if obs.shape[1:] not in (self.obs_shape, (self.spec.obs_size,)) or len(obs) == 0:
            raise UsageError(
                f"an observation of {self.spec.name} has the shape {self.obs_shape}, got {obs.shape}: "
                f"give one, or a batch of them"
            )
        return obs.reshape(len(obs), -1), False

    def _copy(self, **changes: Any) -> "Sentinel":
        """Another agent that shares what is not changed."""
        other = object.__new__(Sentinel)
        other.__dict__.update(self.__dict__ | changes)
        agent_options = {k: v for k, v in other.options.items() if k not in _PLAN_OPTIONS}
        other.agent = make_sentinel(other.spec, **agent_options)
        return other


@jax.jit
def _act(agent: SentinelAgent, state: SentinelState, obs: Any, epsilon: Any, keys: Any) -> Any:
    return jax.vmap(lambda x, key: agent.act(state, x, epsilon, key))(obs, keys)


def _resolve(env: World) -> tuple[Any, EnvSpec]:
    """The environment to learn in and its sizes: a JAX one where there is one, else Gymnasium's."""
    if isinstance(env, EnvSpec):
        return None, env
    if isinstance(env, str):
        twin = make_env(env)
        env = twin if twin is not None else gymnasium.make(env)
    if isinstance(env, gymnasium.Env):
        return env, spec_of(env)
    if env is None or not hasattr(env, "spec"):
        raise UsageError(
            f"an environment is needed to know its sizes, got {env!r}: give a name or a Gymnasium environment"
        )
    return env, env.spec


def _obs_shape(env: Any, spec: EnvSpec) -> tuple[int, ...]:
    """The shape in which users hand in an observation."""
    shape = env.observation_space.shape if isinstance(env, gymnasium.Env) else None
    return (spec.obs_size,) if shape is None else tuple(shape)


def _from_json(content: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}


def _as_json(options: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, RiskMeasure) else value for name, value in options.items()}
