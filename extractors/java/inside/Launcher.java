package excise;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.engine.JupiterTestEngine;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherConfig;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.vintage.engine.VintageTestEngine;

/**
 * Finds and runs tests on the JUnit Platform, one at a time, as a supervisor asks for it.
 *
 * Commands and answers are lines with fields that are separated by tabs; texts that may hold anything are in base64.
 *
 *   class NAME BYTES       nothing; the class is loaded from memory
 *   define                 nothing; no more classes come
 *   hash NUMBER            nothing; so many objects get hashes, so that later ones get others than in another machine
 *   list FOLDER            TEST UNIQUE_ID CLASS NAMES PARAMETER, for each test that is known before it runs: of the
 *                          classes from memory, if there are any, else of the folder; at the end DONE
 *   run UNIQUE_ID          RESULT UNIQUE_ID CLASS NAMES PARAMETER STATUS SECONDS MESSAGE, for each test below it, with
 *                          coverage: COVERED CLASS SOURCE_FILE LINES before it; at the end RAN; the supervisor then
 *                          sends a token, which is answered by DONE TOKEN STATUS. Lifted tests send VALUE SITE TEXT
 *                          and OPAQUE, too ({@link Observed})
 *
 * So no token is in this process while a test runs, and no command before the last one was answered.
 *
 * Nothing that the class path offers is registered: neither engines nor listeners, filters or extensions. Settings of
 * the project (junit-platform.properties) are overruled.
 */
public final class Launcher {
    private static final Pattern VINTAGE = Pattern.compile("(?s)(.*)\\(([^()]+)\\)");
    private final org.junit.platform.launcher.Launcher launcher;
    private final Connection supervisor;
    private final Coverage coverage;

    private Launcher(Connection supervisor, boolean covered) {
        this.supervisor = supervisor;
        this.coverage = covered ? new Coverage() : null;
        this.launcher = LauncherFactory.create(LauncherConfig.builder()
            .enableTestEngineAutoRegistration(false)
            .enableLauncherSessionListenerAutoRegistration(false)
            .enableLauncherDiscoveryListenerAutoRegistration(false)
            .enablePostDiscoveryFilterAutoRegistration(false)
            .enableTestExecutionListenerAutoRegistration(false)
            .addTestEngines(new JupiterTestEngine(), new VintageTestEngine())
            .build());
    }

    /** Arguments: path of the supervisor's socket, folders of the project's classes, and "covered" if coverage is measured. */
    public static void main(String[] arguments) throws IOException {
        Connection supervisor = new Connection(arguments[0]);
        Observed.connect(supervisor);
        ProjectLoader loader = new ProjectLoader(arguments[1]);
        Thread.currentThread().setContextClassLoader(loader);
        Launcher launcher = new Launcher(supervisor, arguments.length > 2);
        System.setIn(new ByteArrayInputStream(new byte[0]));
        supervisor.send("READY");
        for (String line = supervisor.receive(); line != null; line = supervisor.receive()) {
            String[] words = line.split("\t", -1);
            if (words[0].equals("class")) {
                loader.add(words[1], Base64.getDecoder().decode(words[2]));
            } else if (words[0].equals("define")) {
                loader.define();
            } else if (words[0].equals("hash")) {
                for (int i = Integer.parseInt(words[1]); i > 0; i--) {
                    System.identityHashCode(new Object());
                }
            } else if (words[0].equals("list")) {
                launcher.list(words[1], loader.names());
            } else if (words[0].equals("run")) {
                launcher.run(decoded(words[1]));
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private void list(String folder, List<String> classes) {
        List<DiscoverySelector> selectors = new ArrayList<>();
        for (String name : classes) {
            selectors.add(DiscoverySelectors.selectClass(name));
        }
        if (classes.isEmpty()) {
            selectors.addAll(
                DiscoverySelectors.selectClasspathRoots(Collections.singleton(Paths.get(folder))));
        }
        TestPlan plan = launcher.discover(request(selectors));
        for (TestIdentifier root : plan.getRoots()) {
            for (TestIdentifier each : plan.getDescendants(root)) {
                String[] names = namesOf(each);
                if (names != null) {
                    supervisor.send("TEST", encoded(each.getUniqueId()), names[0], names[1], encoded(names[2]));
                }
            }
        }
        supervisor.send("DONE", "", "");
    }

    private void run(String id) {
        if (coverage != null) {
            coverage.take();
        }
        Listener listener = new Listener();
        try {
            launcher.execute(request(Collections.singletonList(DiscoverySelectors.selectUniqueId(id))), listener);
        } catch (Throwable error) {
            listener.failed = true;
        }
        String status = listener.status();
        supervisor.send("RAN");
        supervisor.send("DONE", String.valueOf(supervisor.receive()), status);
    }

    private static LauncherDiscoveryRequest request(List<? extends DiscoverySelector> selectors) {
        return LauncherDiscoveryRequestBuilder.request()
            .selectors(selectors)
            .enableImplicitConfigurationParameters(false)
            .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "false")
            .configurationParameter("junit.jupiter.execution.parallel.enabled", "false")
            .build();
    }

    /** Binary name of the class, names inside it joined by "::", and the parameter; null for what is no test. */
    private static String[] namesOf(TestIdentifier test) {
        List<UniqueId.Segment> segments = UniqueId.parse(test.getUniqueId()).getSegments();
        UniqueId.Segment last = segments.get(segments.size() - 1);
        if (segments.get(0).getValue().equals("junit-vintage")) {
            boolean known = test.isTest() && segments.size() > 2;
            return known ? vintageNames(segments.get(1).getValue(), last.getValue()) : null;
        }
        StringBuilder type = new StringBuilder();
        String method = null;
        List<String> numbers = new ArrayList<>();
        for (UniqueId.Segment segment : segments) {
            String value = segment.getValue();
            switch (segment.getType()) {
                case "class": type.append(value); break;
                case "nested-class": type.append('$').append(value); break;
                case "method": case "test-template": case "test-factory":
                    method = value.substring(0, value.indexOf('(')); break;
                case "test-template-invocation": case "dynamic-test": case "dynamic-container":
                    numbers.add(value.substring(1)); break;
                default: break;
            }
        }
        if (method == null || last.getType().equals("dynamic-container")) {
            return null;
        }
        return new String[] {type.toString(), method, String.join(".", numbers)};
    }

    private static String[] vintageNames(String runner, String test) {
        Matcher matcher = VINTAGE.matcher(test);
        String type = matcher.matches() ? matcher.group(2) : runner;
        String name = matcher.matches() ? matcher.group(1) : test;
        int bracket = name.indexOf('[');
        if (bracket > 0 && name.endsWith("]")) {
            return new String[] {type, name.substring(0, bracket), name.substring(bracket + 1, name.length() - 1)};
        }
        return new String[] {type, name.replaceAll("[\\[\\]]|::", "_"), ""};
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }

    private final class Listener implements TestExecutionListener {
        private final Set<String> reported = new HashSet<>();
        private TestPlan plan;
        private boolean failed;
        private boolean passed;
        private long began = System.nanoTime();

        @Override
        public void testPlanExecutionStarted(TestPlan started) {
            plan = started;
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            if (test.isTest()) {
                began = System.nanoTime();
            }
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            reportAll(test, "SKIPPED", String.valueOf(reason));
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            String message = result.getThrowable().map(Launcher::describe).orElse("");
            String status = "PASSED";
            if (result.getStatus() == TestExecutionResult.Status.FAILED) {
                status = "FAILED";
                failed = true;
            } else if (result.getStatus() == TestExecutionResult.Status.ABORTED) {
                status = "SKIPPED";
            }
            if (test.isTest()) {
                report(test, status, message);
            } else if (!status.equals("PASSED")) {
                reportAll(test, status, message);
            }
        }

        private void reportAll(TestIdentifier test, String status, String message) {
            report(test, status, message);
            for (TestIdentifier each : plan.getDescendants(test)) {
                report(each, status, message);
            }
        }

        private void report(TestIdentifier test, String status, String message) {
            String[] names = namesOf(test);
            if (names == null || !reported.add(test.getUniqueId())) {
                return;
            }
            passed |= status.equals("PASSED");
            if (coverage != null) {
                for (String[] line : coverage.take()) {
                    supervisor.send("COVERED", line[0], line[1], line[2]);
                }
            }
            String seconds = String.valueOf((System.nanoTime() - began) / 1e9);
            supervisor.send("RESULT", encoded(test.getUniqueId()), names[0], names[1], encoded(names[2]), status, seconds,
                encoded(message));
        }

        private String status() {
            return failed ? "FAILED" : passed ? "PASSED" : reported.isEmpty() ? "MISSING" : "SKIPPED";
        }
    }

    private static String describe(Throwable error) {
        String text;
        try {
            text = error.toString();
        } catch (Throwable other) {
            text = error.getClass().getName();
        }
        StringWriter frames = new StringWriter();
        StackTraceElement[] trace = error.getStackTrace();
        if (trace.length > 0 && !(error instanceof AssertionError)) {
            new PrintWriter(frames, true).print(" at " + trace[0]);
        }
        return text.length() > 300 ? text.substring(0, 300) : text + frames;
    }
}
