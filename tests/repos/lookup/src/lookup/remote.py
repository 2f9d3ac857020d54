"""Tables of a server; its client library is on no index."""

from vendor_tables import connect


def fetch(name):
    """A table of the server, as a list."""
    return list(connect("tables").read(name))
