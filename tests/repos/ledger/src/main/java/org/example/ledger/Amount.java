package org.example.ledger;

import java.util.Locale;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** An amount of money in the smallest unit of its currency. Amounts never change. */
public final class Amount implements Comparable<Amount> {
    private static final Pattern TEXT = Pattern.compile("(-?)(\\d+)(?:\\.(\\d+))?\\s*([A-Za-z]{3})");

    private final long units;
    private final String currency;

    /**
     * Makes an amount.
     *
     * @param units number of the smallest units, which may be negative
     * @param currency code of three letters
     * @throws NullPointerException if there is no currency
     */
    public Amount(long units, String currency) {
        this.units = units;
        this.currency = Objects.requireNonNull(currency);
    }

    /**
     * Reads an amount such as {@code 12.50 EUR} or {@code -3 JPY}; the case of the currency does not count.
     *
     * @param text what to read
     * @return the amount
     * @throws IllegalArgumentException if the text is no amount, or has more digits than the currency
     */
    public static Amount parse(String text) {
        Matcher matcher = TEXT.matcher(text.trim());
        if (!matcher.matches()) {
            throw new IllegalArgumentException("not an amount: " + text);
        }
        String code = matcher.group(4).toUpperCase(Locale.ROOT);
        int digits = Currencies.digits(code);
        StringBuilder fraction = new StringBuilder(matcher.group(3) == null ? "" : matcher.group(3));
        if (fraction.length() > digits) {
            throw new IllegalArgumentException("too many digits: " + text);
        }
        while (fraction.length() < digits) {
            fraction.append('0');
        }
        long units = Long.parseLong(matcher.group(2) + fraction);
        return new Amount(matcher.group(1).isEmpty() ? units : -units, code);
    }

    /** The number of smallest units. */
    public long units() {
        return units;
    }

    /** The code of the currency. */
    public String currency() {
        return currency;
    }

    /**
     * Divides the amount into parts whose sizes differ by one unit at most, the larger ones first.
     *
     * @param parts number of parts, at least one
     * @return the parts, whose sum is this amount
     * @throws IllegalArgumentException if there are no parts
     */
    public Amount[] split(int parts) {
        if (parts < 1) {
            throw new IllegalArgumentException("no parts: " + parts);
        }
        Amount[] found = new Amount[parts];
        long share = Math.floorDiv(units, (long) parts);
        long left = units - share * parts;
        for (int place = 0; place < parts; place++) {
            found[place] = new Amount(share + (place < left ? 1 : 0), currency);
        }
        return found;
    }

    /** The sum of two amounts of one currency. */
    public Amount plus(Amount other) {
        requireSame(other);
        return new Amount(Math.addExact(units, other.units), currency);
    }

    private void requireSame(Amount other) {
        if (!currency.equals(other.currency)) {
            throw new IllegalArgumentException(currency + " is not " + other.currency);
        }
    }

    @Override
    public int compareTo(Amount other) {
        requireSame(other);
        return Long.compare(units, other.units);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Amount && ((Amount) other).units == units && ((Amount) other).currency.equals(currency);
    }

    @Override
    public int hashCode() {
        return Objects.hash(units, currency);
    }

    /** The amount as {@link #parse} reads it, with all digits of the currency. */
    @Override
    public String toString() {
        int digits = Currencies.digits(currency);
        String plain = String.valueOf(Math.abs(units));
        StringBuilder text = new StringBuilder(plain);
        while (text.length() <= digits) {
            text.insert(0, '0');
        }
        if (digits > 0) {
            text.insert(text.length() - digits, '.');
        }
        return (units < 0 ? "-" : "") + text + " " + currency;
    }
}
