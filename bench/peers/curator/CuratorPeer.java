import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Locks and unlocks with Curator's InterProcessMutex: each line of input is for how many seconds, answered by pairs a second. */
public final class CuratorPeer {
    private static double measure(InterProcessMutex mutex, double seconds) throws Exception {
        long begin = System.nanoTime();
        long end = begin + (long) (seconds * 1e9);
        long pairs = 0;
        for (; System.nanoTime() < end; pairs++) {
            mutex.acquire();
            mutex.release();
        }
        return pairs / ((System.nanoTime() - begin) / 1e9);
    }

    public static void main(String[] arguments) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(arguments[0], new ExponentialBackoffRetry(100, 3));
        client.start();
        client.blockUntilConnected();
        InterProcessMutex mutex = new InterProcessMutex(client, arguments[1]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(measure(mutex, Double.parseDouble(line)));
        }
        client.close();
    }
}
