from itertools import islice

from shapes import spiral


def test_start():
    assert list(spiral(1)) == [(0, 0)]


def test_first_turn():
    assert list(islice(spiral(9), 5)) == [(0, 0), (1, 0), (1, 1), (0, 1), (-1, 1)]


def test_no_field_twice():
    fields = list(spiral(100))
    assert len(set(fields)) == 100
