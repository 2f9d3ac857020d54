package excise;

import java.io.File;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.net.URL;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.BitSet;
import java.util.Collections;
import java.util.Currency;
import java.util.Date;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.UUID;

/**
 * Reports the values that lifted tests find, as texts; it knows of nothing that they expect.
 *
 * Equal values have equal texts, and others have none: those of types that the project declares say no more than where
 * an object lies. As in checks, boxed numbers are equal only if their types are.
 */
public final class Observed {
    private static final int MAX_DEPTH = 16;
    private static final int MAX_ITEMS = 100_000;
    private static final int MAX_TEXT = 2_000;
    private static final Set<Class<?>> NAMED = Set.of(
        Byte.class, Short.class, Integer.class, Long.class, Float.class, Double.class, BigInteger.class, BigDecimal.class,
        UUID.class, URI.class, URL.class, Locale.class, Currency.class, BitSet.class, File.class, OptionalInt.class,
        OptionalLong.class, OptionalDouble.class);
    private static final Set<Class<?>> NUMBERS = Set.of(
        Byte.class, Short.class, Integer.class, Long.class, Float.class, Double.class);
    private static Connection supervisor;

    private Observed() {
    }

    /** What a test does, where it would expect an error. */
    public interface Block {
        void run() throws Throwable;
    }

    static void connect(Connection connection) {
        supervisor = connection;
    }

    /** Reports a value that would be compared. {@code site}: the place of the check in its file. */
    public static void report(int site, Object value) {
        StringBuilder text = new StringBuilder();
        if (value != null && NUMBERS.contains(value.getClass())) {
            send(site, value.toString()); // as if it were not boxed
        } else {
            send(site, add(value, text, 0) ? text.toString() : null);
        }
    }

    public static void report(int site, long value) {
        send(site, String.valueOf(value));
    }

    public static void report(int site, char value) {
        report(site, (Object) value);
    }

    public static void report(int site, boolean value) {
        send(site, String.valueOf(value));
    }

    public static void report(int site, float value) {
        send(site, String.valueOf(value));
    }

    public static void report(int site, double value) {
        send(site, String.valueOf(value));
    }

    /** Reports a number that may differ a little from what is expected. */
    public static void near(int site, double value) {
        send(site, "~near " + value);
    }

    public static void near(int site, float value) {
        send(site, "~near " + value);
    }

    public static void near(int site, long value) {
        send(site, "~near " + value);
    }

    /** Reports the items of something, in order. */
    public static void items(int site, Iterable<?> found) {
        List<Object> all = null;
        if (found != null) {
            all = new ArrayList<>();
            for (Object each : found) {
                all.add(all.size() < MAX_ITEMS ? each : new Object());
            }
        }
        report(site, (Object) all);
    }

    /** Reports whether there is no object. */
    public static void isNull(int site, Object value) {
        send(site, String.valueOf(value == null));
    }

    /** Reports the classes of an error; none if there is no error. */
    public static void thrown(int site, Throwable error) {
        StringBuilder text = new StringBuilder("~thrown");
        for (Class<?> each = error == null ? null : error.getClass(); each != null; each = each.getSuperclass()) {
            text.append(' ').append(each.getName());
        }
        send(site, text.toString());
    }

    /** Does something and reports the error that it ends with, which is returned. */
    public static Throwable caught(int site, Block block) {
        Throwable found = null;
        try {
            block.run();
        } catch (Throwable error) {
            found = error;
        }
        thrown(site, found);
        return found;
    }

    /** Fails the test. */
    public static void fail() {
        throw new AssertionError();
    }

    private static void send(int site, String text) {
        Connection to = supervisor;
        if (to != null && text == null) {
            to.send("OPAQUE");
        } else if (to != null) {
            String whole = text.length() > MAX_TEXT ? digest(text) : text;
            to.send("VALUE", String.valueOf(site), Base64.getEncoder().encodeToString(bytes(whole)));
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String digest(String text) {
        try {
            return "sha256 " + new BigInteger(1, MessageDigest.getInstance("SHA-256").digest(bytes(text))).toString(16);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Adds the text of a value; returns whether it has one. */
    private static boolean add(Object value, StringBuilder text, int depth) {
        if (depth > MAX_DEPTH) {
            return false;
        }
        if (value == null || value instanceof Boolean) {
            text.append(value);
        } else if (value instanceof String || value instanceof Character) {
            quote(value.toString(), value instanceof String ? '"' : '\'', text);
        } else if (value instanceof Enum) {
            text.append(((Enum<?>) value).getDeclaringClass().getName()).append('.').append(((Enum<?>) value).name());
        } else if (value instanceof Class) {
            text.append("class ").append(((Class<?>) value).getName());
        } else if (value instanceof Optional) {
            text.append("optional ");
            return add(((Optional<?>) value).orElse(null), text, depth + 1);
        } else if (value.getClass() == Date.class) {
            text.append("date ").append(((Date) value).getTime());
        } else if (NAMED.contains(value.getClass()) || isOfPackage(value, "java.time.") || isPath(value)) {
            quote(value.toString(), '"', text.append(value.getClass().getSimpleName()).append(' '));
        } else if (value instanceof Charset) {
            text.append("charset ").append(((Charset) value).name());
        } else {
            return addItems(value, text, depth);
        }
        return true;
    }

    private static boolean addItems(Object value, StringBuilder text, int depth) {
        if (value.getClass().isArray()) {
            List<Object> all = new ArrayList<>();
            for (int i = 0; i < Math.min(Array.getLength(value), MAX_ITEMS + 1); i++) {
                all.add(Array.get(value, i));
            }
            return addAll(all, text.append("array"), depth);
        }
        if (value instanceof List) {
            return addAll((List<?>) value, text, depth);
        }
        if (value instanceof Set) {
            return addSorted((Set<?>) value, text.append("set"), depth);
        }
        if (value instanceof Map) {
            return addSorted(((Map<?, ?>) value).entrySet(), text.append("map"), depth);
        }
        if (value instanceof Map.Entry) {
            Map.Entry<?, ?> entry = (Map.Entry<?, ?>) value;
            return add(entry.getKey(), text, depth + 1) && add(entry.getValue(), text.append('='), depth + 1);
        }
        return false;
    }

    private static boolean addAll(List<?> values, StringBuilder text, int depth) {
        int number = 0;
        text.append('[');
        for (Object each : values) {
            if (number > 0) {
                text.append(", ");
            }
            if (number++ > MAX_ITEMS || !add(each, text, depth + 1)) {
                return false;
            }
        }
        text.append(']');
        return true;
    }

    private static boolean addSorted(Set<?> values, StringBuilder text, int depth) {
        List<String> all = new ArrayList<>();
        for (Object each : values) {
            StringBuilder one = new StringBuilder();
            if (all.size() > MAX_ITEMS || !add(each, one, depth + 1)) {
                return false;
            }
            all.add(one.toString());
        }
        Collections.sort(all);
        text.append(all);
        return true;
    }

    private static void quote(String value, char mark, StringBuilder text) {
        text.append(mark);
        for (int i = 0; i < value.length(); i++) {
            char each = value.charAt(i);
            if (each == mark || each == '\\') {
                text.append('\\').append(each);
            } else if (Character.isSurrogate(each) || Character.isISOControl(each)) {
                text.append(String.format("\\u%04x", (int) each));
            } else {
                text.append(each);
            }
        }
        text.append(mark);
    }

    private static boolean isPath(Object value) {
        return value instanceof Path && isOfJava(value);
    }

    private static boolean isOfPackage(Object value, String prefix) {
        return value.getClass().getName().startsWith(prefix) && isOfJava(value);
    }

    private static boolean isOfJava(Object value) {
        ClassLoader loader = value.getClass().getClassLoader();
        return loader == null || loader == ClassLoader.getPlatformClassLoader();
    }
}
