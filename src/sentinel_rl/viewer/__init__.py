"""Watch an agent decide: recordings of episodes with the reasons of every decision, and a page to look at them."""

from sentinel_rl.viewer.film import write_film, write_picture
from sentinel_rl.viewer.page import page_text, write_page
from sentinel_rl.viewer.record import record
from sentinel_rl.viewer.recording import Recording, load_recording, save_recording
from sentinel_rl.viewer.scene import Scene, load_scene, load_scenes, save_scene
from sentinel_rl.viewer.schema import About
from sentinel_rl.viewer.trial import Verdict, capture, choices, judge

__all__ = [
    "About",
    "Recording",
    "Scene",
    "Verdict",
    "capture",
    "choices",
    "judge",
    "load_recording",
    "load_scene",
    "load_scenes",
    "page_text",
    "record",
    "save_recording",
    "save_scene",
    "write_film",
    "write_page",
    "write_picture",
]
