"""Each of these tries to do harm; what the sandbox forbids raises, and the test fails."""

import mmap
import os
import signal
import socket


def test_write_outside():
    with open("/etc/excise-was-here", "w") as file:
        file.write("escaped")


def test_write_the_environment():
    with open("/opt/env/excise-was-here", "w") as file:
        file.write("escaped")


def test_read_shadow():
    assert open("/etc/shadow").read()


def test_read_root():
    assert open("/root/.profile").read()


def test_reach_the_network():
    socket.create_connection(("1.1.1.1", 80), timeout=5).close()


def test_resolve_names():
    socket.getaddrinfo("example.com", 80)


def test_configure_the_kernel():
    with open("/proc/sys/kernel/core_pattern", "w") as file:
        file.write("|/tmp/x")


def test_kill_others():
    mine = {os.getpid(), os.getppid(), 1}
    others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in mine]
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    assert others, "there is nobody else here"


def test_kill_init():
    os.kill(1, signal.SIGKILL)
    assert False, "nothing happened"


def test_fill_the_disk():
    with open("/tmp/big", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
            file.flush()


def test_fill_the_results():
    with open("/excise/out/big", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
            file.flush()


def test_eat_memory():
    held = []
    while True:
        held.append(mmap.mmap(-1, 16 << 20))
        held[-1].write(b"x" * (16 << 20))


def test_link_out():
    os.symlink("/etc/shadow", "link")
    assert open("link").read()


def test_z_goes_on():
    assert True
