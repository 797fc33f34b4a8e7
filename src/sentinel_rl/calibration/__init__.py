"""Laws judged by what happened: calibration, a map that corrects them, and knowing when not to act."""

from sentinel_rl.calibration.calibrate import Calibration, LawScore, calibrate
from sentinel_rl.calibration.figures import draw_calibration, draw_handover
from sentinel_rl.calibration.files import load_recalibration, save_calibration
from sentinel_rl.calibration.handover import Handover, hand_over

__all__ = [
    "Calibration",
    "Handover",
    "LawScore",
    "calibrate",
    "draw_calibration",
    "draw_handover",
    "hand_over",
    "load_recalibration",
    "save_calibration",
]
