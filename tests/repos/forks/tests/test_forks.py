"""Tests that fork: without end, into daemons, and back out of the test."""

import os
import signal
import subprocess
import sys
import time


def test_bomb():
    while True:
        try:
            os.fork()
        except OSError:
            pass


def test_daemons():
    for _ in range(3):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)


def test_comes_back_twice():
    assert os.fork() > 0


def test_z_goes_on():
    assert True
