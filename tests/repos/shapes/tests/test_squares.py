import unittest

from shapes import Rectangle, Square, diagonal


class TestRectangle(unittest.TestCase):
    def setUp(self):
        self.rectangle = Rectangle(2, 5)

    def test_area(self):
        self.assertEqual(self.rectangle.area(), 10)

    def test_fits(self):
        self.assertTrue(self.rectangle.fits_into(Rectangle(6, 3)))

    def test_does_not_fit(self):
        self.assertFalse(self.rectangle.fits_into(Rectangle(6, 1)))


class TestSquare(unittest.TestCase):
    def test_grow(self):
        self.assertEqual(Square(2).grow(3).area(), 25)

    def test_shrink_too_far(self):
        with self.assertRaises(ValueError):
            Square(2).grow(-3)


def test_diagonal():
    assert diagonal(3, 4) == 5


def test_corner_distance():
    assert Rectangle(3, 4).corner_distance() == 5


def test_corner_distance_of_frame(frame):
    assert frame.corner_distance() == 5
