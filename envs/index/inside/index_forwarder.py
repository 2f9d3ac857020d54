"""Runs a command in a sandbox without a network, with the package indexes on a port of the loopback interface.

``python index_forwarder.py SOCKET PORT COMMAND…`` forwards connections to the port to a Unix socket, on which the host
serves the indexes (``envs/index/index_relay.py``). If the port is taken, a free one is used and the environment
variables that contain the port are rewritten. Exits with the command's status. Standard library only, Python 3.8+.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading

VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS")


def forward(source, target):
    """Copy one direction of a connection until it ends."""
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(1 << 16)
            if not data:
                break
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def connect(client, path):
    """Forward one connection in both directions until both have ended."""
    with client, socket.socket(socket.AF_UNIX) as host:
        try:
            host.connect(path)
        except OSError:
            return
        back = threading.Thread(target=forward, args=(host, client), daemon=True)
        back.start()
        forward(client, host)
        back.join()


def serve(server, path):
    """Accept and forward connections until the process ends."""
    while True:
        client, _ = server.accept()
        threading.Thread(target=connect, args=(client, path), daemon=True).start()


def listen(port):
    """A listening socket on the port, or on a free port if it is taken."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind(("127.0.0.1", port))
        server.listen(128)  # fails if another process has bound the port at the same time and listens first
    except OSError:
        server.close()
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen(128)
    return server


def main():
    """Start forwarding, run the command, return its exit status."""
    path, port, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    server = listen(port)
    env = dict(os.environ)
    for name in VARIABLES:
        if name in env:
            env[name] = env[name].replace("127.0.0.1:%d/" % port, "127.0.0.1:%d/" % server.getsockname()[1])
    threading.Thread(target=serve, args=(server, path), daemon=True).start()
    try:
        code = subprocess.call(command, env=env)
    except OSError as error:
        sys.stderr.write("%s: %s\n" % (command[0], error.strerror))
        code = 127
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
