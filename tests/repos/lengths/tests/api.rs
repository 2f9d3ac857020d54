use lengths::{longest, parse, Length};

#[test]
fn whole_units() {
    let length = parse("1m 20cm").unwrap();
    assert_eq!(length.whole("cm"), Some(120));
    assert_eq!(length.whole("m"), Some(1));
    assert_eq!(length.whole("ft"), None);
}

#[test]
fn longest_of_some() {
    assert_eq!(longest(&[Length(3), Length(7), Length(5)]), Some(Length(7)));
    assert_eq!(longest(&[]), None);
}
