//! Units and their sizes.

const UNITS: [(&str, u64); 4] = [("km", 1_000_000), ("m", 1000), ("cm", 10), ("mm", 1)];

/// Millimetres in one unit of the given name; `None` for unknown names.
pub fn factor(unit: &str) -> Option<u64> {
    let found = UNITS.iter().find(|(name, _)| *name == unit);
    found.map(|(_, size)| *size)
}

/// Name and size of the largest unit that is not larger than the number of millimetres.
pub fn nearest_unit(millimetres: u64) -> (&'static str, u64) {
    for (name, size) in UNITS.iter() {
        if *size <= millimetres {
            return (name, *size);
        }
    }
    ("mm", 1)
}

#[cfg(test)]
mod tests {
    use super::{factor, nearest_unit};

    macro_rules! unit_tests {
        ($($name:ident: $unit:expr, $size:expr;)*) => {
            $(
                #[test]
                fn $name() {
                    assert_eq!(factor($unit), $size);
                }
            )*
        };
    }

    unit_tests! {
        metre: "m", Some(1000);
        foot: "ft", None;
    }

    #[test]
    fn nearest() {
        assert_eq!(nearest_unit(999), ("cm", 10));
        assert_eq!(nearest_unit(0), ("mm", 1));
    }
}
