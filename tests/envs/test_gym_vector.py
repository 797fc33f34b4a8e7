import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode

from sentinel_rl.envs import CartPole, GymVectorEnv, Toy, _batch
from tests.envs.worlds import NAMES

pytestmark = pytest.mark.filterwarnings("ignore:.*-v0 is out of date:DeprecationWarning")

N = 3
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


def make(name: str, mode: AutoresetMode, limit: int | None = None) -> tuple[GymVectorEnv, gymnasium.vector.VectorEnv]:
    """Our vector environment, and Gymnasium's around single ones: the oracle."""
    settings = {} if limit is None else {"max_episode_steps": limit}
    ours = gymnasium.make_vec(name, num_envs=N, autoreset_mode=mode, **settings)
    singles = gymnasium.make_vec(
        name, num_envs=N, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **settings
    )
    return ours, singles


def assert_equal_infos(ours: dict, theirs: dict) -> None:
    assert ours.keys() == theirs.keys()
    for key in ours.keys() - {"final_obs"}:
        np.testing.assert_equal(ours[key], theirs[key])
    for mine, other in zip(ours.get("final_obs", []), theirs.get("final_obs", []), strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            np.testing.assert_allclose(mine, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "limit"), [("sentinel/CartPole-v1", None), ("sentinel/CartPole-v0", 14)])
def test_a_batch_equals_singles_through_all_resets(name: str, limit: int | None, mode: AutoresetMode):
    """Seeds, steps, both kinds of end, automatic resets and final observations."""
    ours, singles = make(name, mode, limit)
    rng, ends = np.random.default_rng(0), np.zeros(2, int)
    np.testing.assert_array_equal(ours.reset(seed=11)[0], singles.reset(seed=11)[0])
    for _ in range(60):
        actions = rng.integers(2, size=N)
        (obs, *flags, info), (their_obs, *their_flags, their_info) = ours.step(actions), singles.step(actions)
        np.testing.assert_allclose(obs, their_obs, rtol=0, atol=1e-5)
        for mine, other in zip(flags, their_flags, strict=True):
            np.testing.assert_array_equal(mine, other)
        assert_equal_infos(info, their_info)
        ends += [flags[1].sum(), flags[2].sum()]
    assert ends[0] > 2
    assert ends[1] > 2 or limit is None


def test_toy_batch_equals_singles():
    ours, singles = make("sentinel/Toy-v0", AutoresetMode.NEXT_STEP)
    ours.reset(seed=2)
    singles.reset(seed=2)
    for _ in range(6):
        for mine, other in zip(ours.step(np.array([0, 1, 0])), singles.step(np.array([0, 1, 0])), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-6) if not isinstance(mine, dict) else None


@pytest.mark.parametrize("name", NAMES)
def test_shapes_types_and_metadata(name: str):
    envs = gymnasium.make_vec(name, num_envs=N)
    size = envs.unwrapped.env.spec.obs_size
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    obs, info = envs.reset(seed=0)
    assert (obs.shape, obs.dtype, info) == ((N, size), np.float32, {})
    assert obs in envs.observation_space
    obs, rewards, terminations, truncations, info = envs.step(envs.action_space.sample())
    assert obs in envs.observation_space
    assert (rewards.shape, rewards.dtype, info) == ((N,), np.float32, {})
    assert terminations.dtype == truncations.dtype == np.bool_


def test_next_step_mode_ignores_the_action_after_an_end():
    envs = GymVectorEnv(Toy(), num_envs=N)
    envs.reset(seed=0)
    _, rewards, terminations, _, _ = envs.step(np.array([0, 1, 1]))
    assert terminations.all()
    assert (rewards != 0).all()
    obs, rewards, terminations, _, _ = envs.step(np.array([0, 1, 1]))
    np.testing.assert_array_equal(obs, [[1, 0, 0]] * N)
    np.testing.assert_array_equal(rewards, 0)
    assert not terminations.any()


def test_same_step_mode_keeps_the_true_successor():
    envs = GymVectorEnv(Toy(), num_envs=N, autoreset_mode="SameStep")
    envs.reset(seed=0)
    obs, _, terminations, _, info = envs.step(np.array([1, 1, 1]))
    assert terminations.all()
    np.testing.assert_array_equal(obs, [[1, 0, 0]] * N)
    np.testing.assert_array_equal(np.stack(info["final_obs"]), [[0, 0, 1]] * N)


def test_copies_differ_and_seeds_repeat():
    envs = gymnasium.make_vec("sentinel/CartPole-v1", num_envs=N)
    first, _ = envs.reset(seed=4)
    assert len(np.unique(first, axis=0)) == N
    onward, _ = envs.reset()
    assert not np.isin(onward, first).any()
    np.testing.assert_array_equal(envs.reset(seed=4)[0], first)
    np.testing.assert_array_equal(envs.reset()[0], onward)
    np.testing.assert_array_equal(envs.reset(seed=[6, 5, 4])[0], [*envs.reset(seed=[6, 5, None])[0][:2], first[0]])


def test_a_seed_for_some_leaves_the_others_on_their_stream():
    envs, same = (GymVectorEnv(CartPole(None), num_envs=N) for _ in range(2))
    envs.reset(seed=4)
    same.reset(seed=4)
    np.testing.assert_array_equal(envs.reset(seed=[None, 9, 9])[0][0], same.reset()[0][0])


def test_equal_environments_share_compiled_code():
    GymVectorEnv(CartPole(None), num_envs=N).reset(seed=0)
    compiled = _batch.start._cache_size()
    GymVectorEnv(CartPole(None), num_envs=N).reset(seed=1)
    assert _batch.start._cache_size() == compiled


def test_vmapped_steps_equal_single_steps():
    env, keys, actions = CartPole(), jax.random.split(jax.random.key(0), 16), np.arange(16) % 2

    def first_step(key, action):
        return env.step(env.reset(key)[0], action, key)[1].obs

    batch, single = np.asarray(jax.jit(jax.vmap(first_step))(keys, actions)), jax.jit(first_step)
    for i in range(16):
        np.testing.assert_allclose(single(keys[i], actions[i]), batch[i], rtol=1e-6)


@pytest.mark.parametrize("actions", [[0, 1, 2], [0, -1, 0], [0, 1], [0.0, 1.0, 1.0], 1])
def test_actions_that_do_not_exist_are_refused(actions: object):
    envs = GymVectorEnv(CartPole(None), num_envs=N)
    envs.reset(seed=0)
    with pytest.raises(InvalidAction, match=r"does not exist: it must be in MultiDiscrete\(\[2 2 2\]\)"):
        envs.step(np.array(actions))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="num_envs = 0 is not allowed"):
        GymVectorEnv(CartPole(None), num_envs=0)
    with pytest.raises(ValueError, match=r"autoreset_mode .* use one of \['NextStep', 'SameStep'\]"):
        GymVectorEnv(CartPole(None), autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(ValueError, match="max_episode_steps = 0 is not allowed"):
        GymVectorEnv(CartPole(None), max_episode_steps=0)
    envs = GymVectorEnv(CartPole(None), num_envs=N)
    with pytest.raises(ResetNeeded, match="call reset"):
        envs.step(np.zeros(N, int))
    with pytest.raises(ResetNeeded, match="call reset"):
        envs.render()
    with pytest.raises(ValueError, match="2 seeds for num_envs = 3"):
        envs.reset(seed=[1, 2])
    with pytest.raises(ValueError, match="reset takes no options"):
        envs.reset(options={"reset_mask": np.array([True, False, False])})


def test_pictures_of_every_copy():
    envs = gymnasium.make_vec("sentinel/CartPole-v1", num_envs=N, render_mode="rgb_array")
    envs.reset(seed=0)
    first, second, _ = envs.render()
    assert first.shape == second.shape == (400, 600, 3)
    assert (first != second).any()
    plain = GymVectorEnv(CartPole(None), num_envs=N)
    plain.reset(seed=0)
    with pytest.warns(UserWarning, match="draws nothing"):
        assert plain.render() is None


def test_a_nan_comes_out_and_does_not_spread():
    envs = GymVectorEnv(CartPole(None), num_envs=N)
    envs.reset(seed=0)
    motion = envs._batch.state.motion.at[0].set(jnp.nan)
    envs._batch = envs._batch._replace(state=envs._batch.state._replace(motion=motion))
    obs, _, terminations, _, _ = envs.step(np.zeros(N, int))
    np.testing.assert_array_equal(np.isnan(obs).any(-1), [True, False, False])
    assert not terminations.any()
