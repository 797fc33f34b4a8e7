"""The live view: branches are the twin's own, bit for bit; and nothing that is sent to it does harm."""

import base64
import contextlib
import json
import socket
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import sentinel_rl as srl
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.envs.highway import Highway
from sentinel_rl.errors import UsageError
from sentinel_rl.viewer import live as module
from sentinel_rl.viewer import record
from sentinel_rl.viewer.drive import MOST_LINES, Drive, Driver, Edit
from sentinel_rl.viewer.live import Live, listening, make_server
from sentinel_rl.viewer.messages import LARGEST_MESSAGE, Branch, Capture, Change, Go, Hello, read_message
from tests.learners import OPTIONS

ROAD = Highway.preset("highway-v1", duration=6, vehicles_count=5, lanes_count=3)
SEED, LEFT, FASTER = 11, 0, 3
step = jax.jit(ROAD.step)


@pytest.fixture(scope="module")
def drivers():
    agent = srl.Sentinel("MlpPolicy", ROAD, **OPTIONS["sentinel"] | {"k": 2})
    rule = make_agent("highway-rule", ROAD, lanes=3)
    return agent, [Driver("learner", agent.agent, agent.state), Driver("rule", rule, jnp.zeros(()))]


@pytest.fixture(scope="module")
def make(drivers):
    return lambda: Drive(drivers[1], resolve_env(ROAD), SEED)


@pytest.fixture
def drive(make):
    made = make()
    made.drive(0, 4)
    return made


def same_bits(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


@pytest.mark.clients
def test_driving_on_is_the_episode_of_an_evaluation(drivers, drive):
    """What a recording of the same seed holds, the reasons included."""
    wanted = record(drivers[0], ROAD, 1, SEED)
    found = drive.arrays(0, 0, range(4))
    for name in ("action", "reward", "obs", "seen", "wrecked"):
        np.testing.assert_allclose(found[name], wanted.arrays[name][:4], atol=1e-5, err_msg=name)
    np.testing.assert_allclose(found["probs"], wanted.arrays["probs"][:4], atol=1e-5)
    np.testing.assert_array_equal(found["cars"], wanted.arrays["cars"][: 4 * 15 + 1])
    np.testing.assert_array_equal(drive.atoms, wanted.arrays["atoms"])
    assert drive.abouts[0].aleatory == wanted.about.aleatory
    drive.drive(0, 10)
    ride = drive.lines[0].rides[0]
    assert (ride.over, len(ride.steps)) == (True, 6)
    np.testing.assert_allclose(drive.realised(0), wanted.arrays["realised"], atol=1e-4)


def test_a_branch_is_the_twin_stepped_by_hand(drive):
    """Bit for bit: the state of the moment, with another action, and then on by the agent's own choices."""
    line = drive.branch(0, 2, LEFT)
    drive.drive(line, 2)
    ride = drive.lines[line].rides[0]
    state = drive.lines[0].rides[0].states[0]
    actions = [int(one["action"][0]) for one in drive.lines[0].rides[0].steps[:2]]
    actions += [LEFT, *(int(one["action"][0]) for one in ride.steps[3:])]
    for t, action in enumerate(actions):
        assert same_bits(ride.states[t], state), t
        state = step(state, jnp.int32(action), jax.random.key(99))[0]
    assert same_bits(ride.states[-1], state)
    assert int(ride.steps[2]["action"][0]) == LEFT
    assert drive.lines[line].forced
    before, after = (drive.arrays(n, 0, range(3))["cars"] for n in (0, line))
    np.testing.assert_array_equal(before[: 2 * 15 + 1], after[: 2 * 15 + 1])


def test_others_start_from_the_same_moment(drive):
    """And go their own way from there, in a world of their own."""
    line = drive.branch(0, 2, FASTER)
    drive.drive(line, 1)
    mine, other = drive.lines[line].rides
    assert same_bits(mine.states[2], other.states[2])
    assert same_bits(mine.states[2], drive.lines[0].rides[0].states[2])
    action = int(other.steps[2]["action"][0])
    assert same_bits(other.states[3], step(other.states[2], jnp.int32(action), jax.random.key(5))[0])
    assert drive.sentence(line, 1, 2) == drive.abouts[1].actions[action]
    assert drive.sentence(line, 1, 0) == drive.sentence(0, 0, 0), "before the fork it is the first driver's"
    assert set(drive.arrays(line, 1, range(3))) < set(drive.arrays(line, 0, range(3)))


def test_traffic_is_changed(drive):
    state = drive.state(0, 2)
    moved = drive.edit(0, 2, Edit(1, x=float(state.x[0]) + 40, y=7.9, speed=12.0))
    now = drive.state(moved, 2)
    assert (float(now.x[1]), float(now.y[1]), int(now.target_lane[1])) == (float(state.x[0] + 40), np.float32(7.9), 2)
    assert (float(now.speed[1]), float(now.target_speed[1]), float(now.heading[1])) == (12.0, 12.0, 0.0)
    others = np.arange(6) != 1
    assert same_bits(
        jax.tree.map(lambda a: a[others] if a.ndim else a, now),
        jax.tree.map(lambda a: a[others] if a.ndim else a, state),
    )
    assert same_bits(
        drive.state(moved, 3),
        step(now, jnp.int32(int(drive.arrays(moved, 0, range(2, 3))["action"][0])), jax.random.key(1))[0],
    )
    np.testing.assert_array_equal(drive.arrays(moved, 0, range(3))["cars"][30, 1, :2], [now.x[1], now.y[1]])
    frozen = drive.edit(0, 2, Edit(2, freeze=True))
    drive.drive(frozen, 3)
    places = [float(one.x[2]) for one in drive.lines[frozen].rides[0].states[2:]]
    assert max(places) - min(places) < 1.0
    wreck = drive.edit(0, 1, Edit(3, wreck=True))
    assert bool(drive.state(wreck, 1).crashed[3])
    assert bool(drive.arrays(wreck, 0, range(2))["crashed"][15, 3]), "and it is drawn at once"
    assert not bool(drive.state(0, 1).crashed[3]), "the line it left stays as it was"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda drive: drive.branch(0, 4, 0), "decision 4 is not there"),
        (lambda drive: drive.branch(3, 0, 0), "line 3 is not there"),
        (lambda drive: drive.branch(0, 0, 5), "choose 0 to 4"),
        (lambda drive: drive.edit(0, 0, Edit(6)), "the last one is 5"),
        (lambda drive: drive.state(0, 5), "moment 5 is not there"),
        (lambda drive: [drive.edit(0, 0, Edit(1)) for _ in range(MOST_LINES)], "no room for more"),
    ],
)
def test_what_cannot_be_driven_is_told(drive, act, words):
    with pytest.raises(UsageError, match=words):
        act(drive)


def test_other_worlds_and_too_many_drivers(drivers):
    with pytest.raises(UsageError, match="cannot be driven live"):
        Drive(drivers[1], resolve_env("CartPole-v1"))
    with pytest.raises(UsageError, match="1 to 6 drivers"):
        Drive([], resolve_env(ROAD))


GOOD = {
    '{"do": "hello", "session": null}': Hello(None),
    '{"do": "drive", "line": 0, "count": 10}': Go(0, 10),
    '{"do": "branch", "line": 1, "at": 3, "action": 4}': Branch(1, 3, 4),
    '{"do": "edit", "line": 0, "at": 0, "vehicle": 2, "x": 5, "wreck": true}': Change(0, 0, Edit(2, x=5.0, wreck=True)),
    '{"do": "capture", "line": 0, "at": 0, "name": "one"}': Capture(0, 0, "one"),
}
BAD = [
    *(
        "",
        "null",
        "[]",
        "{}",
        "1e999",
        "NaN",
        '"drive"',
        '{"do": "drive"',
        '{"do": null}',
        '{"do": "exec"}',
        '{"do": []}',
    ),
    *(
        '{"do": "drive", "line": 0}',
        '{"do": "drive", "line": 0, "count": 11}',
        '{"do": "drive", "line": -1, "count": 1}',
    ),
    *('{"do": "drive", "line": true, "count": 1}', '{"do": "drive", "line": 0, "count": 1.5}'),
    *('{"do": "drive", "line": 0, "count": 1, "count": 2}', '{"do": "drive", "line": 0, "count": 1, "x": 1}'),
    *('{"do": "branch", "line": 0, "at": 1e9, "action": 0}', '{"do": "branch", "line": 0, "at": 0, "action": "0"}'),
    *('{"do": "edit", "line": 0, "at": 0}', '{"do": "edit", "line": 0, "at": 0, "vehicle": 1, "x": "1"}'),
    *(
        '{"do": "edit", "line": 0, "at": 0, "vehicle": 1, "x": NaN}',
        '{"do": "edit", "line": 0, "at": 0, "vehicle": -1}',
    ),
    '{"do": "edit", "line": 0, "at": 0, "vehicle": 1, "speed": 1e308}',
    '{"do": "edit", "line": 0, "at": 0, "vehicle": 1, "freeze": 1}',
    '{"do": "hello", "session": 7}',
    *("[" * 4000, '{"do": "hello", "session": "' + "x" * LARGEST_MESSAGE + '"}', "\x00\x01\x02", "\ud7ff" * 10),
]


@pytest.mark.parametrize(("content", "message"), GOOD.items(), ids=[str(i) for i in range(len(GOOD))])
def test_messages_are_read(content, message):
    assert read_message(content) == message


@pytest.mark.parametrize("content", BAD, ids=lambda one: one[:30])
def test_what_is_no_message_is_refused(content):
    with pytest.raises(ValueError, match=r"."):
        read_message(content)


@pytest.fixture(scope="module")
def live(make):
    """A server of its own, on a free port."""
    with listening(0) as place:
        made = Live(make, place.getsockname()[1])
        server = make_server(made)
        thread = threading.Thread(target=server.run, args=([place],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield made
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


def joined(live, token=None, origin=None, **more):
    address = f"ws://127.0.0.1:{live.port}/live?token={live.token if token is None else token}"
    return connect(address, origin=live.origins[0] if origin is None else origin, max_size=None, **more)


def said(socket, **message):
    socket.send(json.dumps(message))
    return json.loads(socket.recv(timeout=30))


def fetched(address, **headers):
    return urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=10)


def test_the_page_is_given_for_the_token_alone(live):
    with fetched(live.address) as answer:
        text = answer.read().decode()
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Frame-Options"] == "DENY"
    assert "live.js" not in text
    assert live.token not in text
    assert f"connect-src 'self' ws://127.0.0.1:{live.port}" in text
    for address, headers, code in [
        (live.address.split("?")[0], {}, 403),
        (f"{live.address}x", {}, 403),
        (live.address[:-1], {}, 403),
        (live.address, {"Host": "evil.example"}, 421),
        (live.address.replace("/?", "/etc/passwd?"), {}, 404),
    ]:
        with pytest.raises(urllib.error.HTTPError) as found:
            fetched(address, **headers)
        assert found.value.code == code
        found.value.close()


@pytest.mark.parametrize(
    ("token", "origin"),
    [
        ("", None),
        ("wrong", None),
        ("é", None),
        (None, "http://evil.example"),
        (None, "null"),
        (None, "https://127.0.0.1"),
    ],
)
def test_strangers_are_refused(live, token, origin):
    with pytest.raises(InvalidStatus) as found, joined(live, token, origin):
        pass
    assert found.value.response.status_code == 403


def test_a_page_without_an_origin_is_refused(live):
    address = f"ws://127.0.0.1:{live.port}/live?token={live.token}"
    with pytest.raises(InvalidStatus), connect(address):
        pass


def decoded(packed):
    kind = np.dtype(packed["type"])
    return np.frombuffer(base64.b64decode(packed["data"]), kind).reshape(packed["shape"])


def test_play_branch_and_edit_over_the_connection(live, make):
    """What the page is told is what the same drive gives by itself, and a second tab knows nothing of it."""
    twin = make()
    twin.drive(0)
    with joined(live) as socket, joined(live) as other:
        assert "session" in said(socket, do="hello", session=None)
        first, beside = (json.loads(socket.recv(timeout=30)) for _ in range(2))
        assert (first["driver"], beside["driver"], first["count"]) == (0, 1, 1)
        update = said(socket, do="drive", line=0, count=2)
        socket.recv(timeout=30)
        twin.drive(0, 2)
        for name, array in twin.arrays(0, 0, range(1, 3)).items():
            np.testing.assert_array_equal(decoded(update["arrays"][name]), array, err_msg=name)
        update = said(socket, do="branch", line=0, at=1, action=LEFT)
        socket.recv(timeout=30)
        assert (update["line"], update["fork"], update["forced"], update["count"]) == (1, 1, True, 2)
        assert twin.branch(0, 1, LEFT) == 1
        np.testing.assert_array_equal(decoded(update["arrays"]["cars"]), twin.arrays(1, 0, range(2))["cars"])
        update = said(socket, do="edit", line=1, at=1, vehicle=2, wreck=True)
        socket.recv(timeout=30)
        assert (update["line"], update["words"]) == (2, "traffic changed at 2")
        assert "no room" not in json.dumps(update)
        assert "not one of the highways" in said(socket, do="capture", line=0, at=0, name="one")["error"]
        said(other, do="hello", session=None)
        assert json.loads(other.recv(timeout=30))["count"] == 1
        other.recv(timeout=30)
        assert "line 2 is not there" in said(other, do="drive", line=2, count=1)["error"]


def test_a_session_outlives_its_connection(live):
    with joined(live) as socket:
        name = said(socket, do="hello", session=None)["session"]
        for _ in range(2):
            socket.recv(timeout=30)
        said(socket, do="drive", line=0, count=1)
        socket.socket.close()  # as a cable that is pulled
    with joined(live) as socket:
        assert said(socket, do="hello", session=name)["session"] == name
        assert json.loads(socket.recv(timeout=30))["count"] == 2
    with joined(live) as socket:
        assert said(socket, do="hello", session="someone-else")["session"] != name


def test_a_thousand_malformed_messages_do_nothing(live):
    rng = np.random.default_rng(0)
    good = list(GOOD)
    with joined(live) as socket:
        assert "hello first" in said(socket, do="drive", line=0, count=1)["error"]
        said(socket, do="hello", session=None)
        for _ in range(2):
            socket.recv(timeout=30)
        for number in range(1000):
            if number % 2:
                content = BAD[number // 2 % len(BAD)]
            else:
                letters = bytearray(good[number % len(good)].encode())
                for place in rng.integers(0, len(letters), 1 + number % 5):
                    letters[place] = rng.integers(1, 256)
                content = bytes(letters) if number % 4 else letters.decode("latin-1")
                if _is_message(content):
                    continue
            socket.send(content)
            assert "error" in json.loads(socket.recv(timeout=30))
        assert said(socket, do="drive", line=0, count=1)["first"] == 1, "and all is as before"


def _is_message(content):
    try:
        read_message(content)
    except ValueError:
        return False
    return True


def test_a_huge_message_ends_its_connection_alone(live):
    with joined(live) as socket:
        with contextlib.suppress(ConnectionClosed):
            socket.send("x" * 3_000_000)
        with pytest.raises(ConnectionClosed) as found:
            socket.recv(timeout=30)
        assert found.value.rcvd is None or found.value.rcvd.code == 1009
    with joined(live) as socket:
        assert "session" in said(socket, do="hello", session=None)


def test_old_sessions_make_room(live, monkeypatch):
    monkeypatch.setattr(module, "MOST_SESSIONS", 2)
    names = [live.session(None).name for _ in range(3)]
    assert live.session(names[2]).name == names[2]
    assert live.session(names[0]).name != names[0]


def test_whoever_is_told_the_address_can_connect(make, monkeypatch):
    """Even before the server takes connections: they wait."""

    class Late:
        def run(self, sockets):
            pass

    told = []

    def tell(address):
        place = urllib.parse.urlsplit(address)
        socket.create_connection((place.hostname, place.port), timeout=5).close()
        told.append(address)

    monkeypatch.setattr(module, "make_server", lambda live: Late())
    module.serve(make, open_browser=False, tell=tell)
    assert len(told) == 1


def test_the_missing_extra_is_named_and_a_port_that_is_taken(monkeypatch):
    with listening(0) as place:
        place.listen()
        with pytest.raises(UsageError, match="cannot be used"), listening(place.getsockname()[1]):
            pass
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(UsageError, match=r"pip install \"sentinel-rl\[watch\]\""):
        module.serve(lambda: None)
