"""Serves the application on an address, with a token if others can reach it."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass

from excise.datasets.viewer.app import build_app
from excise.datasets.viewer.pages import Site
from excise.errors import StoreError

BACKLOG = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the server listens."""

    host: str = "127.0.0.1"
    """Address or name of this machine."""
    port: int = 8421
    """Port; 0 for any free one."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def serve(site: Site, address: Address, announce: Callable[[str], object]) -> None:
    """Serve until interrupted. ``announce`` gets the address to open, with the token where one is needed.

    Raises :class:`StoreError` if the address cannot be used.
    """
    import uvicorn

    logging.getLogger("excise.datasets.viewer").addHandler(logging.StreamHandler())
    token = "" if address.is_local else secrets.token_urlsafe(24)
    listener = _listener(address)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    announce(f"http://{shown}:{port}/" + (f"?token={token}" if token else ""))
    config = uvicorn.Config(
        build_app(site, token=token), log_level="warning", access_log=False, server_header=False, proxy_headers=False,
        lifespan="off",
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listener])


def _listener(address: Address) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(BACKLOG)
    except OSError as error:
        raise StoreError(
            f"Cannot listen on {address.host} port {address.port} ({error.strerror or error}). "
            "Choose another with --host and --port; --port 0 takes any free one.",
            reason="address",
        ) from error
    return listener
