"""Names of properties that built-in objects of JavaScript and node have: to use one tells nothing of a project."""

from __future__ import annotations

STANDARD_NAMES = frozenset(
    {
        "__proto__", "abs", "add", "all", "allSettled", "any", "apply", "arguments", "assign", "at", "bind",
        "byteLength", "call", "callee", "caller", "catch", "charAt", "charCodeAt", "clear", "code", "codePointAt",
        "concat", "configurable", "constructor", "copyWithin", "create", "default", "defineProperty", "delete",
        "deleteProperty", "description", "done", "endsWith", "entries", "enumerable", "error", "errors", "every",
        "exec", "exports", "fill", "filter", "finally", "find", "findIndex", "findLast", "flags", "flat", "flatMap",
        "floor", "forEach", "freeze", "from", "fromCharCode", "fromEntries", "get", "getOwnPropertyNames",
        "getPrototypeOf", "getTime", "global", "globalThis", "has", "hasOwn", "hasOwnProperty", "ignoreCase",
        "includes", "index", "indexOf", "input", "isArray", "isFrozen", "isInteger", "isNaN", "isPrototypeOf",
        "iterator", "join", "key", "keys", "lastIndex", "lastIndexOf", "length", "log", "map", "match", "matchAll",
        "max", "message", "min", "module", "multiline", "name", "next", "normalize", "now", "of", "ok", "on", "once",
        "parse", "parseFloat", "parseInt", "pop", "process", "propertyIsEnumerable", "prototype", "push", "race", "raw",
        "reduce", "reduceRight", "reject", "repeat", "replace", "replaceAll", "require", "resolve", "return", "reverse",
        "round", "set", "setPrototypeOf", "shift", "size", "slice", "some", "sort", "source", "splice", "split",
        "stack", "startsWith", "sticky", "stringify", "substr", "substring", "symbol", "test", "then", "throw",
        "toFixed", "toISOString", "toJSON", "toLocaleString", "toLowerCase", "toPrecision", "toString", "toUpperCase",
        "trim", "trimEnd", "trimStart", "unicode", "unshift", "value", "valueOf", "values", "warn", "writable",
    }
)  # fmt: skip
"""The names."""
