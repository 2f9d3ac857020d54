"""Runs in the sandbox: which functions a test executes, read from the counters of an instrumented binary.

Debian's compiler comes without the library that writes profiles, so a few lines of C are linked in its place: at the
end of a process, they write the counters as they are in memory. What function a counter belongs to, and where that
begins, is in two sections of the binary (LLVM's coverage mapping, as of LLVM 14). Standard library only; Python 3.8.
"""

import hashlib
import os
import struct
import subprocess
import zlib

VARIABLE = "EXCISE_PROFILE"
"""Names the file that a process writes its counters to."""
_RUNTIME = """
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
int __llvm_profile_runtime;
extern char data0[] __asm__("__start___llvm_prf_data") __attribute__((weak));
extern char data1[] __asm__("__stop___llvm_prf_data") __attribute__((weak));
extern char counts0[] __asm__("__start___llvm_prf_cnts") __attribute__((weak));
extern char counts1[] __asm__("__stop___llvm_prf_cnts") __attribute__((weak));
static void put(int to, const char *from, uint64_t size) {
    while (size) {
        ssize_t done = write(to, from, size);
        if (done <= 0) return;
        from += done, size -= done;
    }
}
__attribute__((destructor)) static void save(void) {
    const char *path = getenv("EXCISE_PROFILE");
    int to = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    uint64_t head[4] = {(uintptr_t)data0, data1 - data0, (uintptr_t)counts0, counts1 - counts0};
    if (to < 0) return;
    put(to, (char *)head, sizeof head), put(to, data0, head[1]), put(to, counts0, head[3]);
    close(to);
}
"""
_WRAPPER = """#!/bin/sh
export RUSTC_BOOTSTRAP=1
exec "$@" -C instrument-coverage -Z no-profiler-runtime -C link-arg=%s
"""
_RECORD = struct.Struct("<QQqQQI4x")
"""A function's data: hash of its name, hash, its counters (relative), itself, values, number of counters."""
_HEAD = struct.Struct("<4Q")


def make_wrapper(folder):
    """Write the program that runs the compiler for instrumented crates; return its path."""
    source, runtime, wrapper = (os.path.join(folder, name) for name in ("runtime.c", "runtime.o", "rustc"))
    with open(source, "w") as file:
        file.write(_RUNTIME)
    subprocess.run(["gcc", "-O1", "-c", source, "-o", runtime], check=True, capture_output=True)
    with open(wrapper, "w") as file:
        file.write(_WRAPPER % runtime)
    os.chmod(wrapper, 0o755)
    return wrapper


def sections(data):
    """Name to content of the sections of an ELF file."""
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQ", data, offset + size * number) for number in range(count)]
    found = {}
    for name, _, _, _, start, length in heads:
        begin = heads[names][4] + name
        found[data[begin : data.index(b"\0", begin)].decode()] = data[start : start + length]
    return found


def _number(data, at):
    """(value, next place) of a number in LEB128."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _files(mapping):
    """Hash of a list of files to the files."""
    found, at = {}, 0
    while at + 16 <= len(mapping):
        _, size, _, _ = struct.unpack_from("<4I", mapping, at)
        blob = mapping[at + 16 : at + 16 + size]
        at += 16 + size
        at += -at % 8
        if not size:
            continue
        count, place = _number(blob, 0)
        _, place = _number(blob, place)
        packed, place = _number(blob, place)
        text = zlib.decompress(blob[place : place + packed]) if packed else blob[place:]
        names, place = [], 0
        for _ in range(count):
            length, place = _number(text, place)
            names.append(text[place : place + length].decode("utf-8", "replace"))
            place += length
        base = names[0] if names else ""
        found[hashlib.md5(blob).digest()[:8]] = [os.path.normpath(os.path.join(base, name)) for name in names]
    return found


def places_of_functions(binary):
    """Hash of a function's name to (file, line) of its beginning, of an instrumented binary."""
    with open(binary, "rb") as file:
        parts = sections(file.read())
    files = _files(parts.get("__llvm_covmap", b""))
    found, at, data = {}, 0, parts.get("__llvm_covfun", b"")
    while at + 28 <= len(data):
        name, size, _, of_files = struct.unpack_from("<QIQ8s", data, at)
        body = data[at + 28 : at + 28 + size]
        at += 28 + size
        at += -at % 8
        try:
            count, place = _number(body, 0)
            first, place = _number(body, place)
            for _ in range(count - 1):
                _, place = _number(body, place)
            expressions, place = _number(body, place)
            for _ in range(2 * expressions + 2):  # two each; then the number of regions, and the first one's counter
                _, place = _number(body, place)
            line, place = _number(body, place)
            found[name] = files[of_files][first], line
        except (IndexError, KeyError):
            continue
    return found


def executed(profile, places):
    """(file, line) of the functions that a process has executed, by the file that it wrote."""
    try:
        with open(profile, "rb") as file:
            data = file.read()
        data_at, size, counts_at, counts_size = _HEAD.unpack_from(data)
    except (OSError, struct.error):
        return set()
    counters, found = data[_HEAD.size + size :][:counts_size], set()
    for at in range(0, size - _RECORD.size + 1, _RECORD.size):
        name, _, relative, _, _, count = _RECORD.unpack_from(data, _HEAD.size + at)
        start = data_at + at + relative - counts_at
        if name in places and any(counters[start : start + 8 * count]):
            found.add(places[name])
    return found
