"""Tests that do not end: asleep, deaf, and inside C code that never looks at signals."""

import collections
import itertools
import os
import signal
import threading
import time


def test_sleeps_for_ever():
    while True:
        time.sleep(3600)


def test_catches_everything():
    while True:
        try:
            time.sleep(3600)
        except BaseException:
            pass


def test_takes_the_alarm_away():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    threading.Event().wait()


def test_hangs_in_c():
    collections.deque(itertools.repeat(0), maxlen=0)


def test_ends_the_process():
    os._exit(0)


def test_crashes():
    os.kill(os.getpid(), signal.SIGSEGV)


def test_z_goes_on():
    assert True
