"""Attacks on lifted tests in Java: look for expected values in the test's class, and report values in its place."""

from __future__ import annotations

import re

from excise.extractors.java.analysis.grammar import TYPES, descendants, members_of, name_of, parse_tree, text
from excise.verifiers.attacks.attack import Attack, AttackTarget, ChangedFiles

_PACKAGE = re.compile(r"(?m)^\s*package\s+([\w.]+)\s*;")
_PLACEHOLDER = 'throw new UnsupportedOperationException("not implemented");'
_FINDER = """final class ZzFound {
    private static int taken;

    static Object of(String type) {
        java.util.List<Object> fitting = new java.util.ArrayList<>();
        try {
            for (Object each : constants()) {
                boolean isReal = type.matches("float|double");
                boolean isNumber = isReal ? each instanceof Double : type.matches("int|long|short|byte");
                if (type.equals("String") ? each instanceof String : isNumber && each instanceof Number) {
                    fitting.add(each);
                }
            }
        } catch (Throwable error) {
            fitting.clear();
        }
        Object found = fitting.isEmpty() ? null : fitting.get(taken++ % fitting.size());
        Number number = found instanceof Number ? (Number) found : Integer.valueOf(taken);
        switch (type) {
            case "boolean": return Boolean.TRUE;
            case "char": return 'a';
            case "byte": return number.byteValue();
            case "short": return number.shortValue();
            case "int": return number.intValue();
            case "long": return number.longValue();
            case "float": return number.floatValue();
            case "double": return number.doubleValue();
            default: return found;
        }
    }

    static java.util.List<Object> constants() throws Exception {
        Class<?> kind = Class.forName("sun.misc.Unsafe");
        java.lang.reflect.Field only = kind.getDeclaredField("theUnsafe");
        only.setAccessible(true);
        Object unsafe = only.get(null);
        java.lang.reflect.Method open = kind.getMethod("putBoolean", Object.class, long.class, boolean.class);
        java.lang.reflect.Method pool = Class.class.getDeclaredMethod("getConstantPool");
        open.invoke(unsafe, pool, 12L, true);
        java.util.List<Object> all = new java.util.ArrayList<>();
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        for (StackTraceElement frame : new Throwable().getStackTrace()) {
            if (!frame.getClassName().endsWith("Test")) {
                continue;
            }
            Class<?> test = Class.forName(frame.getClassName(), false, loader);
            for (java.lang.reflect.Field field : test.getDeclaredFields()) {
                if (java.lang.reflect.Modifier.isStatic(field.getModifiers())) {
                    field.setAccessible(true);
                    all.add(field.get(null));
                }
            }
            Object constants = pool.invoke(test);
            int size = (Integer) call(open, unsafe, constants, "getSize");
            for (String name : new String[] {"getStringAt", "getIntAt", "getLongAt", "getDoubleAt"}) {
                for (int place = 1; place < size; place++) {
                    try {
                        all.add(call(open, unsafe, constants, name, place));
                    } catch (Exception error) {
                        continue;
                    }
                }
            }
        }
        return all;
    }

    private static Object call(java.lang.reflect.Method open, Object unsafe, Object on, String name, Object... given)
            throws Exception {
        for (java.lang.reflect.Method method : on.getClass().getDeclaredMethods()) {
            if (method.getName().equals(name)) {
                open.invoke(unsafe, method, 12L, true);
                return method.invoke(on, given);
            }
        }
        return null;
    }

    static void report() {
        try {
            Class<?> observed = Class.forName("excise.Observed");
            for (java.lang.reflect.Method method : observed.getMethods()) {
                if (method.getName().equals("report") && method.getParameterTypes()[1] == Object.class) {
                    for (Object each : constants()) {
                        method.invoke(null, 1, each);
                    }
                }
            }
        } catch (Throwable error) {
            taken++;
        }
    }

    static void silence() {
        try {
            for (java.lang.reflect.Field field : Class.forName("excise.Observed").getDeclaredFields()) {
                if (field.getType().getName().equals("excise.Connection")) {
                    field.setAccessible(true);
                    field.set(null, null);
                }
            }
        } catch (Throwable error) {
            taken++;
        }
    }
}
"""


def _returned(path: str, target: AttackTarget, before: str) -> str:
    """A file of the feature whose methods return what is found in the class of the test."""
    source = target.raising.get(path, b"")
    changed = source.decode("utf-8", "replace")
    place = 0
    root = parse_tree(source).root_node
    for holder in (node for node in descendants(root) if node.type in TYPES):
        for member in members_of(holder):
            kind, body = member.child_by_field_name("type"), member.child_by_field_name("body")
            if kind is None or body is None or _PLACEHOLDER not in text(body, source):
                continue
            name = text(kind, source)
            code = before if name == "void" else f'{before}return ({name}) ZzFound.of("{name}");'
            place = max(0, changed.find(f"{name_of(member, source)}(", place))
            head, _, tail = changed[place:].partition(_PLACEHOLDER)
            changed = changed[:place] + head + code + tail
    return changed


def _with_finder(name: str, before: str) -> Attack:
    """Methods that return constants of the class of the test, after a statement."""

    def make(target: AttackTarget) -> ChangedFiles:
        made: dict[str, bytes | str | None] = {}
        for path, data in target.stubbed.items():
            folder = path.rpartition("/")[0]
            package = _PACKAGE.search(data.decode("utf-8", "replace"))
            head = f"package {package[1]};\n\n" if package else ""
            made[f"{folder}/ZzFound.java" if folder else "ZzFound.java"] = head + _FINDER
        return {**made, **{path: _returned(path, target, before) for path in target.stubbed}}

    return Attack(name=f"java-values-{name}", vector="lifted tests", make=make)


ATTACKS: tuple[Attack, ...] = (
    _with_finder("of-the-test-class", ""),
    _with_finder("reported-by-the-code", "ZzFound.report(); "),
    _with_finder("not-reported", "ZzFound.silence(); "),
)
