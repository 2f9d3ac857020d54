"""Imitates a busy machine in the process that runs the tests. Standard library only, Python 3.8 and later.

On a busy machine a process that gives up its turn, if only to send a message, waits for the next one. Here a thread
keeps the interpreter's lock for some milliseconds at a time, which costs no CPU time and stops all other threads where
they give the lock up. Between such phases everything runs freely: many short waits must not add up to hours.
"""

import ctypes
import os
from _thread import allocate_lock, start_new_thread
from time import sleep

PAUSE_US = 20000
PAUSES = 7
"""In a row. They are counted, not timed: tests freeze the clock, in every module that they find."""
FREE_S = 0.05


class Pauses:
    """The thread. It ends before a fork and begins again after it: no child inherits it, no warning is caused by it."""

    def __init__(self):
        self.pause = ctypes.PyDLL(None).usleep  # unlike functions of a CDLL, those of a PyDLL keep the lock
        self.wanted = allocate_lock()
        self.alive = allocate_lock()
        self.forking = allocate_lock()
        self.pid = os.getpid()

    def begin(self):
        self.wanted.acquire()
        self.alive.acquire()
        start_new_thread(self.work, ())

    def work(self):
        while not self.wanted.acquire(True, FREE_S):
            for _ in range(PAUSES):
                if not self.wanted.locked():
                    break
                self.pause(PAUSE_US)
                sleep(0)
        self.wanted.release()
        self.alive.release()

    def end(self):
        self.wanted.release()
        with self.alive:
            pass

    def before_fork(self):
        if os.getpid() == self.pid:
            self.forking.acquire()
            self.end()

    def after_fork(self):
        if os.getpid() == self.pid:
            self.begin()
            self.forking.release()


def start():
    """Begin; it goes on until the process ends."""
    pauses = Pauses()
    pauses.begin()
    os.register_at_fork(before=pauses.before_fork, after_in_parent=pauses.after_fork)
