"""The module that an observing form of a test file has: it reports values as texts, and knows nothing of what is right.

Of types that are the crate's own, or whose texts are not the same in two right solutions, it says no more than that.
"""

from __future__ import annotations

NAME = "lifted_values"
"""Name of the module."""
MODULE = """
#[allow(dead_code)]
mod lifted_values {
    extern crate std as lifted_std;
    use self::lifted_std::any::type_name;
    use self::lifted_std::collections::hash_map::DefaultHasher;
    use self::lifted_std::fmt::Debug;
    use self::lifted_std::hash::{Hash, Hasher};
    use self::lifted_std::io::Write;
    use self::lifted_std::prelude::v1::*;
    use self::lifted_std::sync::atomic::{AtomicU64, Ordering};

    const PLAIN: [&str; 18] = [
        "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
        "f32", "f64", "mut",
    ];
    const COMMON: [&str; 17] = [
        "core::option::Option", "core::result::Result", "core::cmp::", "core::time::Duration", "core::ops::range::",
        "core::num::", "core::str::error::", "core::char::", "core::cell::RefCell", "alloc::string::",
        "alloc::vec::Vec", "alloc::boxed::Box", "alloc::borrow::Cow", "alloc::collections::btree::",
        "alloc::collections::vec_deque::", "alloc::rc::Rc", "alloc::sync::Arc",
    ];
    static LAST: AtomicU64 = AtomicU64::new(0);

    pub struct Seen<'a, T: 'a + ?Sized>(pub &'a T);

    pub trait Shown {
        fn show(&self, number: u32);
    }

    pub trait Hidden {
        fn show(&self, number: u32);
    }

    impl<'a, T: 'a + Debug + ?Sized> Shown for Seen<'a, T> {
        fn show(&self, number: u32) {
            if !is_common(type_name::<T>()) {
                return send("OPAQUE");
            }
            let mut line = self::lifted_std::format!("VALUE {} - ", number);
            for byte in self::lifted_std::format!("{:?}", self.0).bytes() {
                line.push_str(&self::lifted_std::format!("{:02x}", byte));
            }
            send(&line);
        }
    }

    impl<'a, 'b, T: 'a + ?Sized> Hidden for &'b Seen<'a, T> {
        fn show(&self, _: u32) {
            send("OPAQUE");
        }
    }

    fn is_common(name: &str) -> bool {
        !name.contains('*')
            && name.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).all(|word| {
                word.chars().all(|c| c.is_ascii_digit())
                    || PLAIN.contains(&word)
                    || COMMON.iter().any(|each| word.starts_with(each))
            })
    }

    fn send(line: &str) {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        if LAST.swap(hasher.finish(), Ordering::SeqCst) != hasher.finish() {
            let to = self::lifted_std::fs::OpenOptions::new().write(true).open("/proc/self/fd/101");
            let _ = to.and_then(|mut to| to.write_all(self::lifted_std::format!("{}\\n", line).as_bytes()));
        }
    }
}
"""
"""Equal values that a check in a loop finds one after the other are reported once: how many there are is no check's
concern. The descriptor is ``RESULT`` of ``excise_test_process.py``."""
