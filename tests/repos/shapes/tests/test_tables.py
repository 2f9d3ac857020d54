from shapes.tables import SMALL, Ruler, make_table


def test_small():
    assert SMALL == [0.0, 3.142, 12.566, 28.274]


def test_make_table():
    assert make_table(1) == [0.0]


def test_ruler_length():
    assert Ruler().length == 30


def test_marks():
    assert Ruler().marks(10) == [0, 10, 20, 30]
