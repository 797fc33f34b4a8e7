"""Risk measures on plain NumPy arrays; no reinforcement learning needed.

Three forecasters each give 1000 scenarios of the yearly return, in percent, of three funds. Which fund is best depends
on how much we fear bad years (aleatory risk), and how much we fear that a forecaster is wrong (epistemic risk).
"""

import numpy as np

from sentinel_rl.risk import Additive, Composite, CVaR, EVaR, Expectation, Wang

FUNDS = ("bonds", "shares", "novelty")
MEANS = np.array([[2.0, 6.0, 9.0], [2.0, 6.0, 6.0], [2.0, 5.0, 3.0]])  # forecaster by fund
SPREADS = np.array([1.0, 8.0, 4.0])

rng = np.random.default_rng(0)
scenarios = MEANS[..., None] + SPREADS[:, None] * rng.standard_normal((3, 3, 1000))  # [forecaster, fund, scenario]

print(f"{'':<30}" + "".join(f"{fund:>9}" for fund in FUNDS))

# One law per fund: all scenarios of all forecasters thrown together, along the last axis.
pooled = np.concatenate(list(scenarios), axis=-1)
for measure in (Expectation(), CVaR(0.25), Wang(0.25), EVaR(0.25)):
    print(f"{measure!s:<30}" + "".join(f"{value:9.2f}" for value in measure.of(pooled)))

# A belief: the first forecaster is trusted as much as the other two together.
trust = [0.5, 0.25, 0.25]
for risk in (Additive(CVaR(0.25)), Composite(CVaR(0.5), CVaR(0.25)), Composite(CVaR(0.25), CVaR(0.25))):
    values = risk.of(scenarios, belief=trust)
    print(f"{risk!s:<30}" + "".join(f"{value:9.2f}" for value in values) + f"   best: {FUNDS[int(np.argmax(values))]}")
