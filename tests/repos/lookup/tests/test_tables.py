import pytest

from lookup import find, names, position, total


def test_names():
    assert names() == ["cubes", "squares"]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_squares(n):
    assert find("squares", n) == n * n


@pytest.mark.parametrize("n", [0, 1, 3])
def test_cubes(n):
    assert find("cubes", n) == n**3


def test_unknown_table():
    with pytest.raises(KeyError):
        find("roots", 1)


def test_negative_index():
    with pytest.raises(IndexError):
        find("squares", -1)


def test_position():
    assert position("squares", 49) == 7
    assert position("squares", 50) == -1


def test_position_of_cube():
    assert position("cubes", 27) == 3


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 0), (4, 14)])
def test_total(count, expected):
    assert total("squares", count) == expected


def test_total_of_cubes():
    assert total("cubes", 3) == 9


def test_negative_total():
    with pytest.raises(ValueError):
        total("squares", -1)
