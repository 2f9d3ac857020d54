"""A module with something to test, in a project with tests that misbehave."""


def double(number):
    """Twice the number."""
    doubled = number + number
    assert doubled == 2 * number
    return doubled


def half(number):
    """Half of an even number; raises ``ValueError`` for others."""
    if number % 2:
        raise ValueError(number)
    return number // 2
