package org.example.ledger;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/** Books amounts on accounts of one currency. */
public class Ledger {
    /** One booking. */
    public static class Booking {
        private final String account;
        private final Amount amount;

        Booking(String account, Amount amount) {
            this.account = account;
            this.amount = amount;
        }

        /** Name of the account. */
        public String account() {
            return account;
        }

        /** What was booked. */
        public Amount amount() {
            return amount;
        }
    }

    private final List<Booking> bookings = new ArrayList<>();
    private final String currency;

    /** An empty ledger. */
    public Ledger(String currency) {
        this.currency = currency;
    }

    /**
     * Books an amount.
     *
     * @throws IllegalArgumentException if it is of another currency
     */
    public Ledger book(String account, Amount amount) {
        if (!amount.currency().equals(currency)) {
            throw new IllegalArgumentException("a ledger in " + currency);
        }
        bookings.add(new Booking(account, amount));
        return this;
    }

    /** All bookings, in order. */
    public List<Booking> bookings() {
        return Collections.unmodifiableList(bookings);
    }

    /** The bookings that a condition holds for. */
    public List<Booking> find(Predicate<Booking> condition) {
        List<Booking> found = new ArrayList<>();
        for (Booking each : bookings) {
            if (condition.test(each)) {
                found.add(each);
            }
        }
        return found;
    }

    /** Account to its balance, in the order in which the accounts were first used; accounts without money are left out. */
    public Map<String, Amount> balances() {
        Map<String, Amount> found = new LinkedHashMap<>();
        for (Booking each : bookings) {
            found.merge(each.account(), each.amount(), Amount::plus);
        }
        found.values().removeIf(amount -> amount.units() == 0);
        return found;
    }
}
