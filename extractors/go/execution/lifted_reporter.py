"""The function that an observing form of a test file has: it reports values as texts, and knows of nothing else.

Of pointers, functions, channels, and structs with fields that are not exported, it says no more than that: their texts
are not the same in two right solutions.
"""

from __future__ import annotations

import re

_PACKAGE = re.compile(rb"(?m)^package[ \t]+\w+[^\n]*\n")
_IMPORTS = 'import (\n\tfmtNAME "fmt"\n\tosNAME "os"\n\treflectNAME "reflect"\n\tsortNAME "sort"\n)\n'
_FUNCTION = """
var lastNAME string
var toNAME = osNAME.NewFile(101, "values")

func reportNAME(number int, keys []interface{}, value interface{}) {
	line := "OPAQUE\\n"
	if text, ok := textNAME(reflectNAME.ValueOf(value)); ok {
		key := "-"
		if keys != nil {
			key = fmtNAME.Sprintf("%x", "key "+fmtNAME.Sprint(keys...))
		}
		line = fmtNAME.Sprintf("VALUE %d %s %x\\n", number, key, text)
	}
	if line != lastNAME {
		lastNAME = line
		toNAME.WriteString(line)
	}
}

func textNAME(value reflectNAME.Value) (string, bool) {
	switch value.Kind() {
	case reflectNAME.Invalid:
		return "nil", true
	case reflectNAME.Bool:
		return fmtNAME.Sprint(value.Bool()), true
	case reflectNAME.Int, reflectNAME.Int8, reflectNAME.Int16, reflectNAME.Int32, reflectNAME.Int64:
		return fmtNAME.Sprint(value.Int()), true
	case reflectNAME.Uint, reflectNAME.Uint8, reflectNAME.Uint16, reflectNAME.Uint32, reflectNAME.Uint64:
		return fmtNAME.Sprint(value.Uint()), true
	case reflectNAME.Float32, reflectNAME.Float64:
		return fmtNAME.Sprint(value.Float()), true
	case reflectNAME.String:
		return fmtNAME.Sprintf("%q", value.String()), true
	case reflectNAME.Interface, reflectNAME.Ptr:
		if value.IsNil() {
			return "nil", true
		}
		text, ok := "", false
		if value.Kind() == reflectNAME.Interface {
			text, ok = textNAME(value.Elem())
		}
		return text, ok
	case reflectNAME.Slice, reflectNAME.Array:
		all := ""
		for i := 0; i < value.Len(); i++ {
			text, ok := textNAME(value.Index(i))
			if !ok {
				return "", false
			}
			all += text + ","
		}
		return "[" + all + "]", true
	case reflectNAME.Map:
		var all []string
		for _, key := range value.MapKeys() {
			name, ok := textNAME(key)
			text, fine := textNAME(value.MapIndex(key))
			if !ok || !fine {
				return "", false
			}
			all = append(all, name+":"+text)
		}
		sortNAME.Strings(all)
		return fmtNAME.Sprintf("map%q", all), true
	case reflectNAME.Struct:
		all := ""
		for i := 0; i < value.NumField(); i++ {
			text, ok := textNAME(value.Field(i))
			if !ok || value.Type().Field(i).PkgPath != "" {
				return "", false
			}
			all += text + ","
		}
		return "{" + all + "}", true
	}
	return "", false
}
"""
"""Equal values that a check in a loop finds one after the other are reported once. The descriptor is ``RESULT`` of
``excise_test_process.py``; a variable keeps it open for the harness."""


def with_reporter(source: bytes, name: str) -> bytes:
    """A test file with the function ``report`` followed by ``name``."""
    found = _PACKAGE.search(source)
    place = found.end() if found else 0
    imports, function = (text.replace("NAME", name).encode() for text in (_IMPORTS, _FUNCTION))
    return source[:place] + imports + source[place:] + b"\n" + function
