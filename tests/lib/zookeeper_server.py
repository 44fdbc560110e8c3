"""A ZooKeeper server of a test's own."""

import os
import shutil
import signal
import socket
import subprocess

import tap

JAR = "/usr/share/java/zookeeper.jar"
CONFIGURATION = """tickTime=200
dataDir={folder}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
minSessionTimeout=200
maxSessionTimeout=600000
4lw.commands.whitelist=*
"""


class ZookeeperServer:
    """Serves when the constructor returns, and dies with the test."""

    def __init__(self):
        if shutil.which("java") is None or not os.path.exists(JAR):
            raise tap.Skip("there is no ZooKeeper server")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        folder = os.path.abspath("zookeeper")
        os.mkdir(folder)
        with open("zoo.cfg", "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(folder=folder, port=self.port))
        words = ["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no", "-cp", JAR]
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self.process = subprocess.Popen(["java", *words, main, "zoo.cfg"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        tap.wait_until(lambda: b"Mode: " in self.ask("srvr"), 30)

    def url(self):
        return f"zk://127.0.0.1:{self.port}"

    def ask(self, word):
        """What it answers to a four-letter word; nothing when nobody is there."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
                connection.sendall(word.encode())
                with connection.makefile("rb") as answer:
                    return answer.read()
        except OSError:
            return b""

    def stop(self):
        """Lets it answer nobody any more."""
        self.process.send_signal(signal.SIGSTOP)
