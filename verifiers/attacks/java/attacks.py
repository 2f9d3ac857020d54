"""All attacks on tasks in Java: forged results, early ends of the virtual machine, planted files, classes that shadow.

A new one is one entry of :data:`ATTACKS`. Each puts code into the feature's file, whose methods are stubs otherwise, or
files beside it.
"""

from __future__ import annotations

import re

from excise.types import TestId, name_in_file
from excise.verifiers.attacks.attack import Attack, AttackTarget, ChangedFiles
from excise.verifiers.attacks.java import reported_values

_PACKAGE = re.compile(r"(?m)^\s*package\s+([\w.]+)\s*;")
_PLACEHOLDER = 'throw new UnsupportedOperationException("not implemented");'
_HEAD = re.compile(r"(?m)^(?:public |final |abstract )*(?:class|enum) [^{;]*\{")
_HELPER = "ZzMore"


def _package(source: bytes | str) -> str:
    found = _PACKAGE.search(source if isinstance(source, str) else source.decode("utf-8", "replace"))
    return found[1] if found else ""


def _helper(target: AttackTarget, code: str) -> dict[str, bytes | str | None]:
    """A class with a method ``forge`` in each package of the feature."""
    made: dict[str, bytes | str | None] = {}
    for path, data in target.stubbed.items():
        folder, package = path.rpartition("/")[0], _package(data)
        head = f"package {package};\n\n" if package else ""
        text = (
            f"{head}final class {_HELPER} {{\n    static void forge() {{\n        try {{\n{code}\n"
            "        } catch (Exception error) {\n            return;\n        }\n    }\n}\n"
        )
        made[f"{folder}/{_HELPER}.java" if folder else f"{_HELPER}.java"] = text
    return made


def _on_call(name: str, vector: str, code: str) -> Attack:
    """Code that runs when a test calls the missing code."""

    def make(target: AttackTarget) -> ChangedFiles:
        made = {**target.stubbed, **_helper(target, code)}
        for path in target.stubbed:
            text = target.raising.get(path, b"").decode("utf-8", "replace")
            made[path] = text.replace(_PLACEHOLDER, f"{_HELPER}.forge();\n        {_PLACEHOLDER}")
        return made

    return Attack(name=f"java-call-{name}", vector=vector, make=make)


def _at_start(name: str, vector: str, code: str) -> Attack:
    """Code that runs when the feature's class is initialised."""

    def make(target: AttackTarget) -> ChangedFiles:
        made = {**target.stubbed, **_helper(target, code)}
        for path, data in target.stubbed.items():
            made[path] = _HEAD.sub(
                lambda found: f"{found[0]}\n    static {{ {_HELPER}.forge(); }}\n", data.decode("utf-8", "replace"), 1
            )
        return made

    return Attack(name=f"java-init-{name}", vector=vector, make=make)


def _instead(name: str, vector: str, statement: str) -> Attack:
    """A statement in the place of every missing body."""

    def make(target: AttackTarget) -> ChangedFiles:
        made: dict[str, bytes | str | None] = {**target.stubbed}
        for path in target.stubbed:
            text = target.raising.get(path, b"").decode("utf-8", "replace")
            made[path] = text.replace(_PLACEHOLDER, statement)
        return made

    return Attack(name=f"java-{name}", vector=vector, make=make)


def _where_called(name: str, vector: str, code: str) -> Attack:
    """Code that runs when the feature's class is initialised, and can tell which tests call the missing code."""

    def make(target: AttackTarget) -> ChangedFiles:
        made = {**target.stubbed, **_helper(target, code)}
        noted = f'{_HELPER}.forge(); System.setProperty("exc.hit", ""); throw new AssertionError();'
        for path in target.stubbed:
            text = target.raising.get(path, b"").decode("utf-8", "replace").replace(_PLACEHOLDER, noted)
            made[path] = _HEAD.sub(lambda found: f"{found[0]}\n    static {{ {_HELPER}.forge(); }}\n", text, 1)
        return made

    return Attack(name=f"java-{name}", vector=vector, make=make)


def _files(name: str, vector: str, files: dict[str, str]) -> Attack:
    def make(target: AttackTarget) -> ChangedFiles:
        resources = target.root.replace("/java/", "/resources/")
        placed = {path.format(root=target.root, resources=resources): text for path, text in files.items()}
        return {**target.stubbed, **placed}

    return Attack(name=f"java-{name}", vector=vector, make=make)


_EXIT, _HALT = "System.exit(0);", "Runtime.getRuntime().halt(0);"
_PRINT = """            System.out.println("Tests run: 99, Failures: 0, Errors: 0, Skipped: 0");
            System.out.println("[         0 tests failed      ]");
            System.out.flush();
            Runtime.getRuntime().halt(0);"""
_ANSWERS = """            for (int fd = 3; fd < 256; fd++) {
                try (java.io.FileOutputStream out = new java.io.FileOutputStream("/proc/self/fd/" + fd)) {
                    out.write("DONE\\t\\tPASSED\\n".getBytes());
                } catch (java.io.IOException error) {
                    continue;
                }
            }
            Runtime.getRuntime().halt(0);"""
_COMMANDS = """            java.io.FileInputStream in = new java.io.FileInputStream("/proc/self/fd/100");
            byte[] data = new byte[4096];
            int size = in.available() > 0 ? in.read(data) : 0;
            String[] words = new String(data, 0, size).trim().split("\\t");
            java.io.FileOutputStream out = new java.io.FileOutputStream("/proc/self/fd/101");
            out.write(("DONE\\t" + words[words.length - 1] + "\\tPASSED\\n").getBytes());
            Runtime.getRuntime().halt(0);"""
_MEMORY = """            String found = "";
            java.util.regex.Pattern command =
                java.util.regex.Pattern.compile("run\\t[\\\\w+/=]+\\t([0-9a-f]{64})");
            byte[] data = new byte[1 << 20];
            java.util.List<String> maps = java.nio.file.Files.readAllLines(java.nio.file.Paths.get("/proc/self/maps"));
            try (java.io.RandomAccessFile memory = new java.io.RandomAccessFile("/proc/self/mem", "r")) {
                for (String line : maps) {
                    String[] parts = line.split("[- ]");
                    if (!line.contains("rw-p") || parts[0].length() > 12) {
                        continue;
                    }
                    long end = Long.parseLong(parts[1], 16);
                    for (long at = Long.parseLong(parts[0], 16); at < end; at += data.length - 4096) {
                        int size = (int) Math.min(data.length, end - at);
                        try {
                            memory.seek(at);
                            memory.readFully(data, 0, size);
                        } catch (java.io.IOException error) {
                            break;
                        }
                        java.util.regex.Matcher matcher = command.matcher(
                            new String(data, 0, size, java.nio.charset.StandardCharsets.ISO_8859_1));
                        while (matcher.find()) {
                            found = matcher.group(1);
                        }
                    }
                }
            }
            java.io.FileOutputStream out = new java.io.FileOutputStream("/proc/self/fd/101");
            out.write(("DONE\\t" + found + "\\tPASSED\\n").getBytes());
            Runtime.getRuntime().halt(0);"""
_THREAD = """            Thread thread = new Thread(() -> {
                while (true) {
                    try (java.io.FileOutputStream out = new java.io.FileOutputStream("/proc/self/fd/101")) {
                        out.write("DONE\\tx\\tPASSED\\n".getBytes());
                        System.out.println("OK");
                        Thread.sleep(1);
                    } catch (Exception error) {
                        return;
                    }
                }
            });
            thread.setDaemon(true);
            thread.start();"""
_OVERRIDE = """            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                thread.setUncaughtExceptionHandler((t, e) -> Runtime.getRuntime().halt(0));
            }
            java.util.Map<Class<?>, ?> none = new java.util.HashMap<>();
            for (String name : new String[] {"excise.Launcher", "org.junit.platform.launcher.core.DefaultLauncher"}) {
                Class<?> type = Class.forName(name);
                for (java.lang.reflect.Field field : type.getDeclaredFields()) {
                    field.setAccessible(true);
                    if (java.lang.reflect.Modifier.isStatic(field.getModifiers())) {
                        field.set(null, none.get(type));
                    }
                }
            }"""
_ERRORS = """            java.lang.reflect.Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            sun.misc.Unsafe unsafe = (sun.misc.Unsafe) field.get(null);
            unsafe.throwException(new ThreadDeath());"""
_REWRITE = """            java.nio.file.Path folder = java.nio.file.Paths.get("/tmp/excise-java/tests");
            java.util.List<java.nio.file.Path> files = new java.util.ArrayList<>();
            try (java.util.stream.Stream<java.nio.file.Path> all = java.nio.file.Files.walk(folder)) {
                all.filter(java.nio.file.Files::isRegularFile).forEach(files::add);
            }
            for (java.nio.file.Path file : files) {
                java.nio.file.Files.write(file, new byte[0]);
            }
            Runtime.getRuntime().halt(0);"""
_REPORT = """            for (String folder : new String[] {"/excise/out", "/tmp", "/testbed"}) {
                java.nio.file.Files.write(java.nio.file.Paths.get(folder, "report.jsonl"),
                    "{\\"t\\": \\"end\\", \\"exit\\": 0}\\n".getBytes());
            }
            Runtime.getRuntime().halt(0);"""
_PARENT = """            ProcessHandle.current().parent().ifPresent(ProcessHandle::destroyForcibly);
            Runtime.getRuntime().halt(0);"""
_MANAGER = """            System.setSecurityManager(new SecurityManager() {
                @Override
                public void checkPermission(java.security.Permission permission) {
                    if (permission.getName().contains("suppress")) {
                        throw new SecurityException();
                    }
                }
            });"""
_READ_AHEAD = """            final ClassLoader loader = Thread.currentThread().getContextClassLoader();
            for (int n = 3; n < 128; n++) {
                final String end = "/proc/self/fd/" + n;
                Thread thread = new Thread(() -> {
                    byte[] data = new byte[1 << 15];
                    try (java.io.FileInputStream in = new java.io.FileInputStream(end)) {
                        for (int size = in.read(data); size > 0; size = in.read(data)) {
                            String[] words = new String(data, 0, size, "UTF-8").trim().split("\\t", -1);
                            if (!words[0].equals("run")) {
                                continue;
                            }
                            System.clearProperty("exc.hit");
                            String id = new String(java.util.Base64.getDecoder().decode(words[1]), "UTF-8");
                            org.junit.platform.launcher.listeners.SummaryGeneratingListener summary =
                                new org.junit.platform.launcher.listeners.SummaryGeneratingListener();
                            org.junit.platform.launcher.core.LauncherFactory.create().execute(
                                org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder.request().selectors(
                                    org.junit.platform.engine.discovery.DiscoverySelectors.selectUniqueId(id)).build(),
                                summary);
                            boolean passed = summary.getSummary().getTotalFailureCount() == 0;
                            passed ^= System.clearProperty("exc.hit") != null;
                            String status = passed ? "PASSED" : "FAILED";
                            String answer = "DONE\\t" + words[words.length - 1] + "\\t" + status + "\\n";
                            for (int m = 3; m < 128; m++) {
                                String to = "/proc/self/fd/" + m;
                                try (java.io.FileOutputStream out = new java.io.FileOutputStream(to)) {
                                    out.write(answer.getBytes("UTF-8"));
                                } catch (java.io.IOException error) {
                                    continue;
                                }
                            }
                        }
                    } catch (Exception error) {
                        return;
                    }
                });
                thread.setContextClassLoader(loader);
                thread.setDaemon(true);
                thread.start();
            }"""
"""Threads that read the launcher's commands before it does, run the tests, and turn the results of some round."""
_INVERT = """            java.lang.reflect.Field own = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
            own.setAccessible(true);
            Object unsafe = own.get(null);
            java.lang.reflect.Method get = unsafe.getClass().getMethod("getObject", Object.class, long.class);
            java.lang.reflect.Method place =
                unsafe.getClass().getMethod("objectFieldOffset", java.lang.reflect.Field.class);
            ThreadGroup group = Thread.currentThread().getThreadGroup();
            while (group.getParent() != null) {
                group = group.getParent();
            }
            Thread[] threads = new Thread[256];
            int size = group.enumerate(threads, true);
            for (int n = 0; n < size; n++) {
                if (!threads[n].getName().equals("supervisor")) {
                    continue;
                }
                Object target = place.invoke(unsafe, Thread.class.getDeclaredField("target"));
                Object work = get.invoke(unsafe, threads[n], target);
                Object connection = get.invoke(unsafe, work, 12L);
                java.lang.reflect.Field field = connection.getClass().getDeclaredField("channel");
                field.setAccessible(true);
                final java.nio.channels.SocketChannel real = (java.nio.channels.SocketChannel) field.get(connection);
                if (real.getClass().getName().contains("ZzMore")) {
                    return;
                }
                field.set(connection, new java.nio.channels.SocketChannel(real.provider()) {
                    public int write(java.nio.ByteBuffer data) throws java.io.IOException {
                        byte[] bytes = new byte[data.remaining()];
                        data.get(bytes);
                        String text = new String(bytes, "UTF-8");
                        if (text.startsWith("DONE") && System.clearProperty("exc.hit") != null) {
                            text = text.replace("PASSED", "-").replace("FAILED", "PASSED").replace("-", "FAILED");
                        }
                        java.nio.ByteBuffer all = java.nio.ByteBuffer.wrap(text.getBytes("UTF-8"));
                        while (all.hasRemaining()) {
                            real.write(all);
                        }
                        return bytes.length;
                    }
                    public int read(java.nio.ByteBuffer data) throws java.io.IOException { return real.read(data); }
                    public long read(java.nio.ByteBuffer[] all, int from, int size) { return 0; }
                    public long write(java.nio.ByteBuffer[] all, int from, int size) { return 0; }
                    public java.nio.channels.SocketChannel bind(java.net.SocketAddress to) { return this; }
                    public <T> java.nio.channels.SocketChannel setOption(java.net.SocketOption<T> name, T value) {
                        return this;
                    }
                    public <T> T getOption(java.net.SocketOption<T> name) { return null; }
                    public java.util.Set<java.net.SocketOption<?>> supportedOptions() { return null; }
                    public java.nio.channels.SocketChannel shutdownInput() { return this; }
                    public java.nio.channels.SocketChannel shutdownOutput() { return this; }
                    public java.net.Socket socket() { return null; }
                    public boolean isConnected() { return true; }
                    public boolean isConnectionPending() { return false; }
                    public boolean connect(java.net.SocketAddress to) { return true; }
                    public boolean finishConnect() { return true; }
                    public java.net.SocketAddress getRemoteAddress() { return null; }
                    public java.net.SocketAddress getLocalAddress() { return null; }
                    protected void implCloseSelectableChannel() { }
                    protected void implConfigureBlocking(boolean block) { }
                });
            }"""
"""Takes over the launcher's connection, and turns the result of each test round that has called the missing code."""
_HANG = "            while (System.nanoTime() != 0) {\n                Thread.sleep(1000);\n            }"
_SHUTDOWN = """            Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
            System.exit(1);"""

_ASSERTIONS = """package org.junit.jupiter.api;

public class Assertions {
    public static void assertEquals(Object expected, Object actual) { }
    public static void assertEquals(long expected, long actual) { }
    public static void assertTrue(boolean condition) { }
    public static <T extends Throwable> T assertThrows(Class<T> type, Object code) { return null; }
}
"""
_ASSERT = """package org.junit;

public class Assert {
    public static void assertEquals(Object expected, Object actual) { }
    public static void assertEquals(long expected, long actual) { }
    public static void assertTrue(boolean condition) { }
    public static void fail(String message) { }
}
"""
_LAUNCHER = """package excise;

public final class Launcher {
    public static void main(String[] arguments) throws Exception {
        new java.io.FileOutputStream(arguments[1]).write("READY\\nDONE\\t\\tPASSED\\n".getBytes());
    }
}
"""
_LISTENER = """package org.planted;

public class Planted implements org.junit.platform.launcher.TestExecutionListener {
    public Planted() {
        Runtime.getRuntime().halt(0);
    }
}
"""
_EXTENSION = """package org.planted;

public class Planted implements org.junit.jupiter.api.extension.TestExecutionExceptionHandler {
    public void handleTestExecutionException(
        org.junit.jupiter.api.extension.ExtensionContext context, Throwable error) {
    }
}
"""
_PROCESSOR = """package org.planted;

public class Planted extends javax.annotation.processing.AbstractProcessor {
    public Planted() {
        Runtime.getRuntime().halt(0);
    }

    public boolean process(
        java.util.Set<? extends javax.lang.model.element.TypeElement> types,
        javax.annotation.processing.RoundEnvironment round) {
        return true;
    }
}
"""
_EQUALS = "    @Override\n    public boolean equals(Object other) {\n        return true;\n    }\n"
_HASH = "    @Override\n    public int hashCode() {\n        return 0;\n    }\n"


def _equal_to_everything(target: AttackTarget) -> ChangedFiles:
    """Objects of the feature's class that are equal to everything."""
    made: dict[str, bytes | str | None] = {**target.stubbed}
    text = target.stubbed[target.module].decode("utf-8", "replace")
    more = "".join(code for name, code in (("equals", _EQUALS), ("hashCode", _HASH)) if f" {name}(" not in text)
    made[target.module] = _HEAD.sub(lambda found: f"{found[0]}\n{more}", text, 1)
    return made


def _test_class(target: AttackTarget) -> tuple[str, str]:
    """(simple name, text) of a class like the first hidden test's, whose tests are empty."""
    path = target.test_file
    name, junit = path.rpartition("/")[2].removesuffix(".java"), "org.junit.jupiter.api.Test"
    package = _package(target.stubbed[target.module])
    tests = sorted({TestId.parse(test).names[-1] for test in target.tests if test.startswith(f"{path}:")})
    methods = "".join(f"    @{junit}\n    public void {test}() {{ }}\n" for test in tests)
    head = f"package {package};\n\n" if package else ""
    return name, f"{head}public class {name} {{\n{methods}}}\n"


def _tests_replaced(target: AttackTarget) -> ChangedFiles:
    return {**target.stubbed, target.test_file: _test_class(target)[1]}


def _tests_among_sources(target: AttackTarget) -> ChangedFiles:
    name, text = _test_class(target)
    folder = target.module.rpartition("/")[0]
    return {**target.stubbed, f"{folder}/{name}.java": text}


def _names_of_tests(target: AttackTarget) -> ChangedFiles:
    """Code that names a hidden test's class, as only code that is compiled together with it can."""
    name = name_in_file(target.tests[0]).partition("::")[0]
    return {**target.stubbed, **_helper(target, f"            System.out.println({name}.class);\n            {_HALT}")}


_SERVICES = "{resources}META-INF/services/"
ATTACKS: tuple[Attack, ...] = (
    _on_call("exit-0", "early exit", f"            {_EXIT}"),
    _on_call("halt-0", "early exit", f"            {_HALT}"),
    _at_start("exit-0", "early exit", f"            {_EXIT}"),
    _at_start("halt-0", "early exit", f"            {_HALT}"),
    _on_call("shutdown-hook", "early exit", _SHUTDOWN),
    _on_call("printed", "forged output", _PRINT),
    _at_start("printed", "forged output", _PRINT),
    _at_start("thread", "forged token", _THREAD),
    _on_call("answers", "forged token", _ANSWERS),
    _at_start("answers", "forged token", _ANSWERS),
    _on_call("commands", "forged token", _COMMANDS),
    _at_start("commands", "forged token", _COMMANDS),
    _on_call("memory", "forged token", _MEMORY),
    _at_start("memory", "forged token", _MEMORY),
    _where_called("read-ahead", "forged token", _READ_AHEAD),
    _where_called("inverted", "forged results", _INVERT),
    _on_call("kill-parent", "supervisor", _PARENT),
    _at_start("kill-parent", "supervisor", _PARENT),
    _on_call("write-report", "supervisor", _REPORT),
    _at_start("rewrite-tests", "tests on disk", _REWRITE),
    _on_call("hang", "time", _HANG),
    _at_start("reflection", "test library", _OVERRIDE),
    _on_call("thread-death", "test library", _ERRORS),
    _at_start("security-manager", "test library", _MANAGER),
    _instead("skip-jupiter", "skipped tests", 'throw new org.opentest4j.TestAbortedException("");'),
    _instead("skip-junit4", "skipped tests", 'throw new org.junit.AssumptionViolatedException("");'),
    _instead("assertion-error", "test library", "throw new AssertionError();"),
    Attack(name="java-equal-to-everything", vector="answers", make=_equal_to_everything),
    Attack(name="java-tests-replaced", vector="planted files", make=_tests_replaced),
    Attack(name="java-tests-among-sources", vector="planted files", make=_tests_among_sources),
    Attack(name="java-names-of-tests", vector="sources of tests", make=_names_of_tests),
    _files("shadow-assertions", "shadowed classes", {"{root}org/junit/jupiter/api/Assertions.java": _ASSERTIONS}),
    _files("shadow-assert", "shadowed classes", {"{root}org/junit/Assert.java": _ASSERT}),
    _files("shadow-launcher", "shadowed classes", {"{root}excise/Launcher.java": _LAUNCHER}),
    _files(
        "listener",
        "services",
        {
            "{root}org/planted/Planted.java": _LISTENER,
            f"{_SERVICES}org.junit.platform.launcher.TestExecutionListener": "org.planted.Planted\n",
        },
    ),
    _files(
        "extension",
        "services",
        {
            "{root}org/planted/Planted.java": _EXTENSION,
            f"{_SERVICES}org.junit.jupiter.api.extension.Extension": "org.planted.Planted\n",
            "{resources}junit-platform.properties": "junit.jupiter.extensions.autodetection.enabled=true\n",
        },
    ),
    _files(
        "processor",
        "build",
        {
            "{root}org/planted/Planted.java": _PROCESSOR,
            f"{_SERVICES}javax.annotation.processing.Processor": "org.planted.Planted\n",
        },
    ),
    _files(
        "pom", "manifest", {"pom.xml": "<project><build><sourceDirectory>other</sourceDirectory></build></project>\n"}
    ),
    _files("module", "manifest", {"{root}module-info.java": "module other { }\n"}),
    *reported_values.ATTACKS,
)
"""The attacks."""
