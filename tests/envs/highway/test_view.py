import sys

import gymnasium
import jax
import numpy as np
import pytest

from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.highway.view import _EGO, _GREY, _OTHER, _WRECK

COMPILE_QUICKLY = True

RESET = jax.jit(Highway.reset)


def has(picture: np.ndarray, colour: tuple[int, int, int]) -> bool:
    return bool((picture == colour).all(axis=-1).any())


@pytest.mark.parametrize("lanes", [1, 5])
def test_the_road_and_its_cars(lanes: int):
    env = Highway(lanes_count=lanes)
    state, _ = RESET(env, jax.random.key(0))
    picture = env.render(state)
    assert (picture.dtype, picture.shape[1:]) == (np.uint8, (600, 3))
    for colour in (_GREY, _EGO, _OTHER, (255, 255, 255)):
        assert has(picture, colour)
    assert not has(picture, _WRECK)
    edges = (picture[:, 0] == 255).all(axis=-1)
    assert edges.sum() >= 2, "both edges of the road reach the border of the picture"


def test_the_ego_is_drawn_where_it_is():
    env = Highway()
    state, _ = RESET(env, jax.random.key(0))
    rows = []
    for lane in range(5):
        picture = env.render(state._replace(y=state.y.at[0].set(4.0 * lane)))
        ys, xs = np.nonzero((picture == _EGO).all(axis=-1))
        rows.append(ys.mean())
        assert xs.mean() == pytest.approx(0.3 * 600, abs=4)
    np.testing.assert_allclose(np.diff(rows), 4 * 5.5, atol=1.0)


def test_wrecks_are_red_and_what_is_not_a_number_is_not_drawn():
    env = Highway()
    state, _ = RESET(env, jax.random.key(0))
    picture = env.render(state._replace(crashed=state.crashed.at[0].set(True)))
    assert has(picture, _WRECK)
    assert not has(picture, _EGO)
    assert has(env.render(state._replace(x=state.x.at[1].set(np.nan))), _EGO)
    assert not has(env.render(state._replace(x=state.x.at[0].set(np.nan))), _OTHER)


@pytest.mark.filterwarnings("ignore:.*HumanRendering wrapper is being applied:UserWarning")
def test_a_window_without_pygame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = gymnasium.make("sentinel/highway-v1", render_mode="human")
    with pytest.raises(gymnasium.error.DependencyNotInstalled, match="pygame is not installed, run `pip install"):
        env.reset(seed=0)
