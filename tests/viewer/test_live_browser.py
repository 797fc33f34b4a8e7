"""The live view in a real, headless browser: drive, rewind, branch, change the traffic, others beside."""

import threading
import time

import jax.numpy as jnp
import pytest

import sentinel_rl as srl
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.envs.highway import Highway
from sentinel_rl.viewer.drive import Drive, Driver
from sentinel_rl.viewer.live import Live, listening, make_server
from tests.learners import OPTIONS
from tests.viewer import browser

ROAD = Highway.preset("highway-v1", duration=12, vehicles_count=8, lanes_count=3)
LEFT, UNTIL = 0, 5
pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def live():
    agent = srl.Sentinel("MlpPolicy", ROAD, **OPTIONS["sentinel"] | {"k": 4})
    rule = make_agent("highway-rule", ROAD, lanes=3)
    drivers = [Driver("learner", agent.agent, agent.state), Driver("highway-rule", rule, jnp.zeros(()))]
    with listening(0) as place:
        made = Live(lambda: Drive(drivers, resolve_env(ROAD), 3), place.getsockname()[1])
        server = make_server(made)
        thread = threading.Thread(target=server.run, args=([place],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield made
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def seen(live, tmp_path_factory):
    tools = browser.installed(tmp_path_factory.mktemp("browser"))
    pictures = str(tmp_path_factory.mktemp("live") / "look")
    return browser.go(tools, "live_tour.mjs", live.address, {"until": UNTIL, "action": LEFT, "pictures": pictures})


@pytest.fixture(scope="module")
def twin(live):
    """The same drive without a server."""
    made = live._make()
    made.drive(0, 12)
    return made


def test_nothing_goes_wrong(seen):
    assert seen["problems"] == []
    assert (seen["first"]["overhang"], seen["phone"]["overhang"]) == (0, 0)


def test_it_drives_on_as_it_would_by_itself(seen, twin):
    for name in ("first", "next", "played", "rewound"):
        moment = seen[name]
        assert moment["sentence"] == twin.sentence(0, 0, moment["decision"])
        if moment["decision"] < len(twin.lines[0].rides[1].steps):
            assert moment["others"][0].startswith(twin.sentence(0, 1, moment["decision"]))
        else:
            assert moment["others"][0].startswith("Crashed.")
    assert (seen["first"]["decision"], seen["next"]["decision"]) == (0, 1)
    assert seen["played"]["decision"] >= UNTIL
    assert seen["rewound"]["decision"] == seen["played"]["decision"] - 2


def test_a_branch_is_a_line_of_its_own(seen):
    at = seen["rewound"]["decision"]
    assert seen["branched"]["label"] == f"2: LANE_LEFT at {at + 1}"
    assert (seen["branched"]["line"], seen["branched"]["decision"], seen["branched"]["last"]) == (1, at, at)
    assert "You chose LANE_LEFT here" in seen["branched"]["aside"]


def test_the_traffic_is_changed_by_buttons_and_by_hand(seen):
    at = seen["rewound"]["decision"]
    assert seen["edited"]["label"] == f"3: traffic changed at {at + 1}"
    assert seen["dragged"]["picked"] > 0
    assert seen["dragged"]["label"] == f"4: traffic changed at {at + 1}"
