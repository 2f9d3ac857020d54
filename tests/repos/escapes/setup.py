"""Runs when the project is installed, and tries what it should not."""

import os
import socket
import subprocess

from setuptools import setup

OUTSIDE = ["/etc/excise-was-here", "/usr/lib/excise-was-here", "/root/excise-was-here", "/var/lib/excise-was-here",
           "/excise/inside/excise-was-here", "/opt/excise-was-here"]

for path in OUTSIDE:
    try:
        with open(path, "w") as file:
            file.write("escaped")
    except OSError:
        pass
    else:
        raise SystemExit("escaped to " + path)

for path in ("/etc/shadow", "/root/.bashrc", "/root/.ssh/id_rsa"):
    try:
        open(path).close()
    except OSError:
        pass
    else:
        raise SystemExit("could read " + path)

with open("tests/test_good.py", "a") as file:
    file.write("\n\ndef test_planted_while_installing():\n    assert False\n")
subprocess.Popen(["sleep", "3600"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.makedirs("/tmp/left", exist_ok=True)

setup()
