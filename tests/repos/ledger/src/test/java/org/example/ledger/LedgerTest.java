package org.example.ledger;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.fail;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.Before;
import org.junit.Test;

public class LedgerTest {
    private Ledger ledger;

    @Before
    public void setUp() {
        ledger = new Ledger("EUR");
    }

    @Test
    public void bookingsKeepTheirOrder() {
        ledger.book("rent", euros(-500)).book("wages", euros(900));
        List<Ledger.Booking> found = ledger.bookings();
        assertEquals("rent", found.get(0).account());
        assertEquals(euros(900), found.get(1).amount());
    }

    @Test
    public void otherCurrenciesAreRefused() {
        try {
            ledger.book("rent", new Amount(1, "USD"));
            fail("dollars were booked");
        } catch (IllegalArgumentException error) {
            assertEquals("a ledger in EUR", error.getMessage());
        }
    }

    @Test(expected = UnsupportedOperationException.class)
    public void bookingsCannotBeChanged() {
        ledger.bookings().add(null);
    }

    @Test
    public void bookingsAreFound() {
        ledger.book("rent", euros(-500)).book("wages", euros(900)).book("rent", euros(-20));
        assertEquals(2, ledger.find(each -> each.account().equals("rent")).size());
        assertEquals(Collections.emptyList(), ledger.find(each -> false));
    }

    @Test
    public void balancesAreSums() {
        ledger.book("b", euros(5)).book("a", euros(7)).book("b", euros(-2)).book("c", euros(1)).book("c", euros(-1));
        assertEquals(Arrays.asList("b", "a"), Arrays.asList(ledger.balances().keySet().toArray()));
        assertEquals(euros(3), ledger.balances().get("b"));
    }

    private static Amount euros(long units) {
        return new Amount(units * 100, "EUR");
    }
}
