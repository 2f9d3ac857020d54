from lookup.remote import fetch


def test_fetch():
    assert fetch("primes") == [2, 3, 5]


def test_fetch_twice():
    assert fetch("primes") == fetch("primes")
