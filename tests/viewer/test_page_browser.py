"""The page in a real, headless browser: it plays, explains, follows other measures, and runs nothing of its data."""

import numpy as np
import pytest

from sentinel_rl.belief import Belief
from sentinel_rl.explanation import Explanation
from sentinel_rl.returns import CategoricalReturn
from sentinel_rl.risk import CVaR, WorstCase, assess
from sentinel_rl.viewer import write_page
from sentinel_rl.viewer.page import SCRIPTS
from tests.viewer import browser
from tests.viewer.made import ACTIONS, LENGTHS, assess_in_numpy, made
from tests.viewer.payloads import PAYLOADS, forged

GRID = 33
OWN = {"aleatory": 0.25, "epistemic": 0.5}
pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """A function that lets the browser go through a page by a plan, and returns what it saw."""
    tools = browser.installed(tmp_path_factory.mktemp("browser"))
    return lambda page, **plan: browser.go(tools, "tour.mjs", page, plan)


RECORDING = made()


def best(decision, epistemic, aleatory):
    return int(np.argmax(assess_in_numpy(RECORDING, decision, epistemic, aleatory)))


def flip():
    """A decision, a level across the members, and the level of chance at which its action changes, to 1e-7."""
    for decision in range(RECORDING.decisions):
        winners = [best(decision, OWN["epistemic"], alpha) for alpha in np.linspace(0.05, 1, 40)]
        if len(set(winners)) > 1:
            place = next(i for i in range(39) if winners[i] != winners[i + 1])
            low, high = np.linspace(0.05, 1, 40)[place : place + 2]
            first = winners[place]
            while high - low > 1e-7:
                middle = (low + high) / 2
                low, high = (middle, high) if best(decision, OWN["epistemic"], middle) == first else (low, middle)
            return decision, low, high
    raise AssertionError("no decision of the recording depends on the level")


DECISION, BELOW, ABOVE = flip()


def address(decision, aleatory, epistemic):
    episode = int(decision >= LENGTHS[0])
    place = f"#episode={episode + 1}&decision={decision - episode * LENGTHS[0] + 1}"
    return f"{place}&aleatory={aleatory}&epistemic={epistemic}"


@pytest.fixture(scope="module")
def seen(tour, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    page = write_page(RECORDING, folder / "page")
    hashes = [
        address(DECISION, f"cvar:{BELOW - 1e-5}", "cvar:0.5"),
        address(DECISION, f"cvar:{ABOVE + 1e-5}", "cvar:0.5"),
        "#episode=99&decision=-4&aleatory=cvar:7&epistemic=<script>",
        address(1, "cvar:0.25", "cvar:0.5"),
    ]
    keys = ["ArrowRight", "ArrowRight", "ArrowLeft", "3", "Escape", "ArrowLeft"]
    keys += ["ArrowDown", "ArrowDown", "ArrowUp", "n", "p"]
    return tour(page, keys=keys, play=True, hashes=hashes, map=[0.8, 0.3], pictures=str(folder / "look"))


def told(decision, epistemic, aleatory):
    """What the terminal would say: the same sentence."""
    arrays = RECORDING.arrays
    belief = Belief(CategoricalReturn(arrays["atoms"], arrays["probs"][decision]), arrays["weights"][decision])
    return Explanation(belief, assess(belief, epistemic, aleatory), "", action_names=ACTIONS)


def test_nothing_goes_wrong(seen):
    assert seen["problems"] == []
    assert seen["nameless"] == []


def test_the_sentence_is_that_of_the_terminal(seen):
    assert seen["first"]["sentence"] == told(0, CVaR(0.5), CVaR(0.25)).sentence
    assert seen["first"]["best"] == RECORDING.arrays["action"][0]


def test_the_keyboard(seen):
    right, again, left, three, escape, home, down, further, up, forward, back = seen["keys"]
    assert [one["decision"] for one in (right, again, left, home)] == [1, 2, 1, 0]
    why = told(1, CVaR(0.5), CVaR(0.25))
    other = "LANE_RIGHT is what it prefers." if why.action == 2 else f"Why not LANE_RIGHT? {why.why_not(2)}."
    assert three["whynot"] == other
    assert escape["whynot"].startswith("Why not another one?")
    assert 0 < down["decision"] == up["decision"] < further["decision"], "marks"
    assert (forward["episode"], back["episode"]) == (1, 0)


def test_an_episode_plays_to_its_end(seen):
    assert seen["started"]["playing"]
    assert not seen["ended"]["playing"]
    assert (seen["ended"]["episode"], seen["ended"]["decision"]) == (0, LENGTHS[0] - 1)


def test_the_decision_flips_where_python_says(seen):
    below, above = seen["moments"][:2]
    assert below["best"] == best(DECISION, 0.5, BELOW)
    assert above["best"] == best(DECISION, 0.5, ABOVE)
    assert below["best"] != above["best"]
    assert below["sentence"].startswith(ACTIONS[below["best"]])
    assert above["sentence"].startswith(ACTIONS[above["best"]])


def test_what_is_not_an_address_of_ours_is_ignored(seen):
    strange = seen["moments"][2]
    assert (strange["episode"], strange["decision"]) == (0, 0)
    assert strange["hacked"] is None


def test_the_map_is_that_of_python(seen):
    levels = 0.01 + np.arange(GRID) / (GRID - 1) * 0.99
    wanted = [[best(1, epistemic, aleatory) for aleatory in levels] for epistemic in levels]
    assert seen["map"] == wanted


def test_the_point_of_the_map_can_be_dragged(seen):
    dragged = seen["dragged"]
    levels = dict(entry.split("=") for entry in dragged["hash"][1:].split("&"))
    aleatory, epistemic = (float(levels[role].removeprefix("cvar:")) for role in ("aleatory", "epistemic"))
    assert aleatory == pytest.approx(0.01 + 0.8 * 0.99, abs=0.02)
    assert epistemic == pytest.approx(0.01 + 0.3 * 0.99, abs=0.02)
    assert dragged["best"] == best(1, epistemic, aleatory)
    differing = [best(d, epistemic, aleatory) != RECORDING.arrays["action"][d] for d in range(LENGTHS[0])]
    assert dragged["otherwise"] == sum(differing), "the timeline follows"


def test_sliders_and_measures(seen):
    slid, chosen, own = seen["slid"], seen["chosen"], seen["own"]
    assert slid["hash"] != seen["dragged"]["hash"]
    level = float(chosen["hash"].split("aleatory=cvar:")[1].split("&")[0])
    assert chosen["hash"].endswith("epistemic=worst_case")
    assert chosen["sentence"] == told(1, WorstCase(), CVaR(level)).sentence
    assert own["hash"] == address(1, "cvar:0.25", "cvar:0.5")
    assert own["otherwise"] == 0


def test_the_timeline_and_the_list_can_be_clicked(seen):
    assert seen["clicked"]["decision"] == int(0.6 * LENGTHS[0])
    assert "IDLE" in seen["compared"]["whynot"]


def test_a_link_leads_to_the_same_moment(seen):
    for key in ("decision", "episode", "sentence", "hash"):
        assert seen["shared"][key] == seen["compared"][key]


def test_both_widths_and_schemes(seen):
    """Nothing hangs over the edge, something is painted, and dark is dark."""
    assert [look["overhang"] for look in seen["looks"]] == [0] * 4
    assert min(look["painted"] for look in seen["looks"]) > 3
    light, dark = ({look["background"] for look in seen["looks"][i::2]} for i in (0, 1))
    assert len(light) == len(dark) == 1
    assert light != dark
    assert seen["theme"] == ["dark", dark.pop()]


@pytest.mark.parametrize(("view", "laws"), [("frames", True), ("chart", False)])
def test_other_worlds_and_agents_without_laws(view, laws, tour, tmp_path):
    recording = made(view, laws, per_second=50.0)
    found = tour(write_page(recording, tmp_path / "page"), keys=["ArrowRight", "2"], play=True)
    assert found["problems"] == []
    assert found["first"]["best"] == recording.arrays["action"][0]
    assert found["ended"]["decision"] == LENGTHS[0] - 1
    assert [look["overhang"] for look in found["looks"]] == [0] * 4
    if not laws:
        assert found["first"]["sentence"].count("over") == 1
        assert "chance" not in found["first"]["sentence"]


def test_laws_that_share_no_support(tour, tmp_path):
    """Quantiles: the decision, the map and what they are drawn from."""
    recording = made(own_atoms=True)
    levels = 0.01 + np.arange(GRID) / (GRID - 1) * 0.99
    wanted = [[int(np.argmax(assess_in_numpy(recording, 1, e, a))) for a in levels] for e in levels]
    plan = {"hashes": [address(1, "cvar:0.25", "cvar:0.5")], "map": [0.8, 0.3], "pictures": str(tmp_path / "look")}
    found = tour(write_page(recording, tmp_path / "page"), **plan)
    assert found["problems"] == []
    assert found["first"]["best"] == recording.arrays["action"][0]
    assert found["map"] == wanted


@pytest.mark.attack("report-script")
def test_no_payload_runs(tour, tmp_path):
    """In every text of a recording, and in the address."""
    pages = [str(write_page(forged(payload), tmp_path / f"{i}.html")) for i, payload in enumerate(PAYLOADS)]
    found = tour(pages[0], pages=pages, hash="#aleatory=<img src=x onerror=window.hacked=1>&episode=<script>")
    assert found["problems"] == []
    assert [page["hacked"] for page in found["pages"]] == [None] * len(PAYLOADS)
    for page, payload in zip(found["pages"], PAYLOADS, strict=True):
        assert page["names"][0] == payload[:90], "shown as it is"
        assert (page["scripts"], page["strangers"]) == (len(SCRIPTS) + 1, 0)


def test_a_payload_that_runs_would_be_noticed(tour, tmp_path):
    """Without escapes and without the policy the first payload sets the variable."""
    page = write_page(forged(PAYLOADS[0]), tmp_path / "page.html")
    text = page.read_text()
    start = text.index("<meta http-equiv")
    text = text[:start] + text[text.index(">", start) + 1 :]
    page.write_text(text.replace("<body>", f"<body>{PAYLOADS[0].removeprefix('</script>')}"))
    found = tour(page, pages=[str(page)])
    assert found["pages"][0]["hacked"] == 1
