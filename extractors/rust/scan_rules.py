"""How Rust code looks to a leak scan; see :class:`excise.protocols.ScanRules`."""

from __future__ import annotations

from excise.protocols import ScanRules

_KEYWORDS = (
    "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move "
    "mut pub ref return self Self static struct super trait true type union unsafe use where while bool char str u8 "
    "u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 Some None Ok Err Option Result Vec String Box"
)
SCAN_RULES = ScanRules(
    literals=rb'r"[^"]*"|r#"(?s:.*?)"#|r##"(?s:.*?)"##|"(?:\\(?s:.)|[^"\\])*"|\'(?:\\[^\n]|[^\'\\\n])\'|//[^\n]*|/\*(?s:.*?)\*/',
    comments=(b"//", b"/*"),
    keywords=frozenset(word.encode() for word in _KEYWORDS.split()),
    definitions=(
        "fn", "struct", "enum", "union", "trait", "type", "const fn", "unsafe fn", "async fn",
    ),
    derived=r"/usr/lib/(?:rustlib/|x86_64-linux-gnu/lib(?:std|test|rustc_driver)-)",
    copies=r"/usr/share/cargo/registry/",
)  # fmt: skip
"""The compiled standard library holds copies of some crates, such as memchr and hashbrown."""
