"""The reasons of one decision of a recording, in numbers and in the sentence that the terminal prints."""

import dataclasses

import numpy as np
from jaxtyping import Float

from sentinel_rl.explanation import told_in_words
from sentinel_rl.viewer.recording import Recording


@dataclasses.dataclass(frozen=True)
class Reasons:
    """What is known of the actions at a decision, each ``[A]``: ``mean - chance - ignorance = value``.

    Args:
        names: of the actions.
        taken: the action that the agent took, counted from 0.
        value: what is maximised.
        mean: of the laws; None for an agent without laws, as the other two.
        chance: what randomness costs.
        ignorance: what the disagreement of the members costs.
    """

    names: tuple[str, ...]
    taken: int
    value: Float[np.ndarray, " A"]
    mean: Float[np.ndarray, " A"] | None = None
    chance: Float[np.ndarray, " A"] | None = None
    ignorance: Float[np.ndarray, " A"] | None = None

    @property
    def best(self) -> int:
        """The action of the highest value."""
        return int(np.argmax(self.value))

    @property
    def sentence(self) -> str:
        """The decision in one sentence, as `sentinel assess` and the page say it."""
        first, *others = (int(action) for action in np.argsort(-self.value, kind="stable"))
        words: dict[str, str | float] = {"best": self.names[first]}
        form = "decision" if others else "only_action"
        if others:
            words |= {"second": self.names[others[0]], "margin": float(self.value[first] - self.value[others[0]])}
        if self.chance is None or self.ignorance is None:
            return told_in_words(f"{form}_without_laws", **words)
        return told_in_words(form, **words, chance=float(self.chance[first]), ignorance=float(self.ignorance[first]))


def reasons_of(recording: Recording, decision: int) -> Reasons:
    """The reasons of a decision, counted over all episodes of a recording."""
    arrays, about = recording.arrays, recording.about
    value, taken = arrays["value"][decision], int(arrays["action"][decision])
    if not recording.has_laws:
        return Reasons(about.actions, taken, value)
    parts = dict(zip(about.parts, arrays["parts"][decision], strict=True))
    mean, additive = parts["mean"], parts["additive"]
    return Reasons(about.actions, taken, value, mean, mean - additive, additive - value)
