"""Walks over a grid."""


def spiral(steps):
    """Yield the first fields of a square spiral around the origin."""
    x = y = 0
    dx, dy = 1, 0
    leg, walked, turns = 1, 0, 0
    for _ in range(steps):
        yield x, y
        x, y = x + dx, y + dy
        walked += 1
        if walked == leg:
            walked = 0
            dx, dy = -dy, dx
            turns += 1
            if turns % 2 == 0:
                leg += 1
