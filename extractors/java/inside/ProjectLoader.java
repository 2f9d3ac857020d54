package excise;

import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Loads the project's classes: from folders, and tests of a graded run from memory.
 *
 * Sources and tests have one loader, since classes of one package see what is not public only then. Libraries come from
 * the loader above it, which is asked first. Classes in memory are defined at once and their bytes forgotten, so that
 * nothing of a solution can read what the tests expect, or which form of them runs.
 */
final class ProjectLoader extends URLClassLoader {
    private final Map<String, byte[]> pending = new HashMap<>();
    private final List<String> names = new ArrayList<>();

    ProjectLoader(String folders) throws MalformedURLException {
        super(urls(folders), ProjectLoader.class.getClassLoader());
    }

    private static URL[] urls(String folders) throws MalformedURLException {
        List<URL> found = new ArrayList<>();
        for (String folder : folders.split(":")) {
            found.add(Paths.get(folder).toUri().toURL());
        }
        return found.toArray(new URL[0]);
    }

    /** Adds a class; none is found before {@link #define}. */
    void add(String name, byte[] data) {
        pending.put(name, data);
        names.add(name);
    }

    /** Names of the classes that were added, sorted. */
    List<String> names() {
        Collections.sort(names);
        return names;
    }

    /** Defines all classes that were added; one that cannot be defined is left for the tests to miss. */
    void define() {
        for (String name : new ArrayList<>(pending.keySet())) {
            try {
                loadClass(name);
            } catch (ClassNotFoundException | LinkageError error) {
                continue;
            }
        }
        pending.clear();
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        byte[] data = pending.remove(name);
        return data == null ? super.findClass(name) : defineClass(name, data, 0, data.length);
    }
}
