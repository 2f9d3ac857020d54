package excise;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/**
 * The launcher's connection with its supervisor: lines in both directions, one at a time.
 *
 * It is a socket that was connected before any class of the project was loaded. Unlike a pipe, it cannot be opened once
 * more through /proc/self/fd. A thread of its own reads and writes, since an interrupt, which tests may leave behind,
 * would close the socket; that thread is in the group above those that tests count.
 */
final class Connection {
    private final SocketChannel channel;
    private final ByteBuffer received = ByteBuffer.allocate(1 << 16).flip();
    private final Object callers = new Object();
    private byte[] outgoing;
    private String incoming;
    private boolean asked;

    Connection(String path) throws IOException {
        channel = SocketChannel.open(UnixDomainSocketAddress.of(path));
        Thread thread = new Thread(Thread.currentThread().getThreadGroup().getParent(), this::serve, "supervisor");
        thread.setDaemon(true);
        thread.start();
    }

    /** Sends a line of fields that are separated by tabs. Returns after it was written. */
    void send(String... fields) {
        perform((String.join("\t", fields) + "\n").getBytes(StandardCharsets.UTF_8));
    }

    /** The next line; null after the last one. */
    String receive() {
        return perform(null);
    }

    private String perform(byte[] data) {
        boolean interrupted = false;
        String found;
        synchronized (callers) {
            synchronized (this) {
                outgoing = data;
                asked = true;
                notifyAll();
                while (asked) {
                    try {
                        wait();
                    } catch (InterruptedException error) {
                        interrupted = true;
                    }
                }
                found = incoming;
                incoming = null;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return found;
    }

    private synchronized void serve() {
        try {
            while (true) {
                while (!asked) {
                    wait();
                }
                if (outgoing == null) {
                    incoming = readLine();
                } else {
                    ByteBuffer data = ByteBuffer.wrap(outgoing);
                    while (data.hasRemaining()) {
                        channel.write(data);
                    }
                }
                outgoing = null;
                asked = false;
                notifyAll();
            }
        } catch (IOException | InterruptedException error) {
            Runtime.getRuntime().halt(3);
        }
    }

    private String readLine() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        while (true) {
            while (received.hasRemaining()) {
                byte next = received.get();
                if (next == '\n') {
                    return line.toString(StandardCharsets.UTF_8);
                }
                line.write(next);
            }
            received.clear();
            int size = channel.read(received);
            received.flip();
            if (size < 0) {
                return null;
            }
        }
    }
}
