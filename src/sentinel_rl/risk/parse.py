"""Risk measures as text, for command lines and file names."""

import dataclasses
import difflib

from sentinel_rl.risk.composite import Additive, Aggregate, BeliefMeasure, Composite
from sentinel_rl.risk.measure import MEASURES, RiskMeasure


def parse_risk(text: str) -> RiskMeasure | BeliefMeasure:
    """Read a risk measure, or a composite of two, from text.

    ``name:parameter[,parameter]`` is a measure of a law; ``epistemic o aleatory`` a `Composite`, and
    ``epistemic o scaled aleatory`` one that scales values by weights; ``additive o aleatory`` an `Additive`.
    ``str(measure)`` prints what parses back. A measure of your own is known by the ``name`` of its class.

    Raises:
        ValueError: for an unknown name (the nearest is suggested) or bad parameters.

    Example:
        >>> parse_risk("cvar:0.25")
        CVaR(alpha=0.25)
        >>> str(parse_risk("wang:0.1 o cvar:0.25"))
        'wang:0.1 o cvar:0.25'
    """
    parts = [part.strip() for part in text.split(" o ")]
    if len(parts) == 1:
        return _parse_measure(parts[0])
    if len(parts) != 2:
        raise ValueError(f"{text!r} composes {len(parts)} measures: write 'epistemic o aleatory'")
    if parts[0].lower() == "additive":
        return Additive(_parse_measure(parts[1]))
    inner = parts[1].removeprefix("scaled ")
    aggregate: Aggregate = "belief" if inner == parts[1] else "scale"
    return Composite(_parse_measure(parts[0]), _parse_measure(inner), aggregate)


def _parse_measure(text: str) -> RiskMeasure:
    name, _, given = text.partition(":")
    name = name.strip().lower()
    if name not in MEASURES:
        near = difflib.get_close_matches(name, MEASURES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown risk measure {name!r}: {hint}known are {', '.join(sorted(MEASURES))}")
    measure = MEASURES[name]
    fields = [field.name for field in dataclasses.fields(measure)]
    usage = ":".join(filter(None, [name, ",".join(f"<{field}>" for field in fields)]))
    try:
        parameters = [float(number) for number in given.split(",")] if given.strip() else []
    except ValueError:
        raise ValueError(f"cannot read the parameters of {text!r}: write {usage} with numbers") from None
    required = sum(field.default is dataclasses.MISSING for field in dataclasses.fields(measure))
    if not required <= len(parameters) <= len(fields):
        raise ValueError(f"{text!r} gives {len(parameters)} parameters: write {usage}")
    return measure(*parameters)
