"""Mischief at collection: every attempt must fail, and the tests go on."""

import os

for path in ("/etc/excise-was-here", "/usr/lib/excise-was-here", "/excise/inside/excise_run.py", "/opt/env/excise-was-here"):
    try:
        with open(path, "w") as file:
            file.write("escaped")
    except OSError:
        continue
    raise RuntimeError("escaped to " + path)

for folder in ("/excise/inside", "/opt/env", "/excise/tools"):
    try:
        os.rename(folder, folder + ".old")
    except OSError:
        continue
    raise RuntimeError("moved " + folder)
