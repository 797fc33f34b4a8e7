import numpy as np

from sentinel_rl.envs.canvas import Canvas


def ink(canvas: Canvas) -> np.ndarray:
    return 1 - canvas.pixels()[..., 0] / 255


def test_an_area_is_painted_in_proportion():
    canvas = Canvas(40, 30)
    canvas.polygon([(5.25, 5), (25.25, 5), (25.25, 15), (5.25, 15)], (0, 0, 0))
    assert abs(ink(canvas).sum() - 200) < 1


def test_a_disc_has_its_area():
    canvas = Canvas(40, 30)
    canvas.disc((20, 15), 8, (0, 0, 0))
    assert abs(ink(canvas).sum() - np.pi * 64) < 2


def test_up_is_up_and_what_lies_outside_is_cut_off():
    canvas = Canvas(10, 10)
    canvas.polygon([(-5, 8), (3, 8), (3, 20), (-5, 20)], (255, 0, 0))
    picture = canvas.pixels()
    assert (picture[:2, :3] == (255, 0, 0)).all()
    assert (picture[2:] == 255).all()
    canvas.disc((50, 50), 3, (0, 0, 0))
    np.testing.assert_array_equal(canvas.pixels(), picture)
