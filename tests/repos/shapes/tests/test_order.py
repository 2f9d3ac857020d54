"""These depend on their order: flaky, and for nobody's use."""

seen = []


def test_a_first():
    assert not seen
    seen.append("a")


def test_b_second():
    assert seen == ["a"]
    seen.append("b")


def test_c_third():
    assert seen == ["a", "b"]
    seen.append("c")


def test_d_fourth():
    assert seen == ["a", "b", "c"]
    seen.append("d")
