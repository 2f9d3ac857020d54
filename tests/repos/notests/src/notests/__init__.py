"""A project without tests."""


def answer():
    """The answer."""
    return 42
