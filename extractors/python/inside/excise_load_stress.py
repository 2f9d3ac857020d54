"""Load stress: imitates a busy machine in the process that runs the tests. Standard library only, Python 3.8+.

On a busy machine, a process that yields the CPU, for example to send a message, waits before it runs again. Here a
thread holds the interpreter's lock for some milliseconds at a time. That costs no CPU time, and stops all other threads
when they release the lock. Between these bursts of pauses everything runs freely, so that many short waits do not add
up to hours.
"""

import ctypes
import os
from _thread import allocate_lock, start_new_thread
from time import sleep

PAUSE_US = 20000
"""Microseconds that the lock is held at a time."""
PAUSES = 7
"""Pauses of one burst. They are counted, not timed, as tests may freeze the clock in every loaded module."""
FREE_S = 0.05
"""Seconds between two bursts."""


class Pauses:
    """The thread that pauses all others. It is stopped before a fork and started again in the parent afterwards: no
    child inherits a locked interpreter, and Python does not warn of a fork with threads."""

    def __init__(self):
        self.pause = ctypes.PyDLL(None).usleep  # a PyDLL's functions keep the interpreter's lock, a CDLL's release it
        self.stop = allocate_lock()
        self.running = allocate_lock()
        self.forking = allocate_lock()
        self.pid = os.getpid()

    def start_thread(self):
        self.stop.acquire()
        self.running.acquire()
        start_new_thread(self.run, ())

    def run(self):
        while not self.stop.acquire(True, FREE_S):
            for _ in range(PAUSES):
                if not self.stop.locked():
                    break
                self.pause(PAUSE_US)
                sleep(0)
        self.stop.release()
        self.running.release()

    def stop_thread(self):
        self.stop.release()
        with self.running:
            pass

    def before_fork(self):
        if os.getpid() == self.pid:
            self.forking.acquire()
            self.stop_thread()

    def after_fork(self):
        if os.getpid() == self.pid:
            self.start_thread()
            self.forking.release()


def start():
    """Start the pauses; they go on until the process ends."""
    pauses = Pauses()
    pauses.start_thread()
    os.register_at_fork(before=pauses.before_fork, after_in_parent=pauses.after_fork)
