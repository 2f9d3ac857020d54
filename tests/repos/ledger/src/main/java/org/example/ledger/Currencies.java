package org.example.ledger;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;

/** What is known of currencies. */
final class Currencies {
    private static final Properties DIGITS = load();

    private Currencies() {
    }

    /** The number of digits after the point; two for currencies that are not known. */
    static int digits(String code) {
        return Integer.parseInt(DIGITS.getProperty(code, "2"));
    }

    private static Properties load() {
        Properties found = new Properties();
        try (InputStream file = Currencies.class.getResourceAsStream("currencies.properties")) {
            found.load(file);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return found;
    }
}
