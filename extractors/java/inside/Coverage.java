package excise;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jacoco.agent.rt.RT;
import org.jacoco.core.data.ExecutionData;
import org.jacoco.core.data.ExecutionDataReader;
import org.jacoco.core.internal.flow.ClassProbesAdapter;
import org.jacoco.core.internal.flow.ClassProbesVisitor;
import org.jacoco.core.internal.flow.IFrame;
import org.jacoco.core.internal.flow.LabelInfo;
import org.jacoco.core.internal.flow.MethodProbesVisitor;
import org.jacoco.core.internal.instr.InstrSupport;
import org.objectweb.asm.Label;

/** Which methods have run since they were last asked for: JaCoCo's probes, each of which belongs to one method. */
final class Coverage {
    /** Internal name of a class to its methods with code; null for a class whose file is not found. */
    private final Map<String, Methods> known = new HashMap<>();

    /** Takes and resets what has run: {class, source file, lines} of each class; one line stands for a method. */
    List<String[]> take() {
        List<String[]> found = new ArrayList<>();
        ExecutionDataReader reader =
            new ExecutionDataReader(new ByteArrayInputStream(RT.getAgent().getExecutionData(true)));
        reader.setSessionInfoVisitor(info -> { });
        reader.setExecutionDataVisitor(data -> add(data, found));
        try {
            reader.read();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return found;
    }

    private void add(ExecutionData data, List<String[]> found) {
        Methods methods = known.computeIfAbsent(data.getName(), Coverage::read);
        TreeSet<Integer> lines = new TreeSet<>();
        boolean[] probes = data.getProbes();
        int begin = 0;
        for (int[] method : methods.all) {
            for (int probe = begin; probe < Math.min(method[0], probes.length); probe++) {
                if (probes[probe] && method[1] > 0) {
                    lines.add(method[1]);
                }
            }
            begin = Math.max(begin, method[0]);
        }
        if (!lines.isEmpty()) {
            StringBuilder joined = new StringBuilder();
            for (int line : lines) {
                joined.append(joined.length() > 0 ? " " : "").append(line);
            }
            found.add(new String[] {data.getName(), methods.source, joined.toString()});
        }
    }

    private static Methods read(String name) {
        Methods methods = new Methods();
        try (InputStream file = Thread.currentThread().getContextClassLoader().getResourceAsStream(name + ".class")) {
            if (file != null) {
                InstrSupport.classReaderFor(file.readAllBytes()).accept(new ClassProbesAdapter(methods, false), 0);
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return methods;
    }

    /** Collects {one past its last probe, a line of it} of each method, in the order of the class file. */
    private static final class Methods extends ClassProbesVisitor {
        final List<int[]> all = new ArrayList<>();
        String source = "";

        @Override
        public void visitSource(String file, String debug) {
            source = file == null ? "" : file;
        }

        @Override
        public MethodProbesVisitor visitMethod(
                int access, String name, String type, String generic, String[] exceptions) {
            int[] method = {0, 0};
            all.add(method);
            // A constructor also has the lines of the fields that it initialises: its last line is its own.
            return new Lines(method, name.equals("<init>"));
        }

        @Override
        public void visitTotalProbeCount(int count) {
        }
    }

    private static final class Lines extends MethodProbesVisitor {
        private final int[] method;
        private final boolean last;

        Lines(int[] method, boolean last) {
            this.method = method;
            this.last = last;
        }

        private void probe(int id) {
            method[0] = Math.max(method[0], id + 1);
        }

        private void label(Label label) {
            if (LabelInfo.getProbeId(label) != LabelInfo.NO_PROBE) {
                probe(LabelInfo.getProbeId(label));
            }
        }

        @Override
        public void visitLineNumber(int line, Label start) {
            method[1] = method[1] == 0 ? line : last ? Math.max(method[1], line) : Math.min(method[1], line);
        }

        @Override
        public void visitProbe(int id) {
            probe(id);
        }

        @Override
        public void visitJumpInsnWithProbe(int opcode, Label label, int id, IFrame frame) {
            probe(id);
        }

        @Override
        public void visitInsnWithProbe(int opcode, int id) {
            probe(id);
        }

        @Override
        public void visitTableSwitchInsnWithProbes(int min, int max, Label other, Label[] labels, IFrame frame) {
            label(other);
            for (Label each : labels) {
                label(each);
            }
        }

        @Override
        public void visitLookupSwitchInsnWithProbes(Label other, int[] keys, Label[] labels, IFrame frame) {
            label(other);
            for (Label each : labels) {
                label(each);
            }
        }
    }
}
