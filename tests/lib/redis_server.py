"""A Redis server of a test's own."""

import os
import shutil
import signal
import socket
import subprocess

import tap

PASSWORD = "geheim"


class RedisServer:
    """Accepts connections when the constructor returns. It keeps nothing on disk, and dies with the test."""

    def __init__(self, password=None):
        if shutil.which("redis-server") is None:
            raise tap.Skip("there is no redis-server")
        self.password = password
        self.path = os.path.abspath("redis.sock")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        options = {"port": self.port, "bind": "127.0.0.1", "unixsocket": self.path, "save": "", "appendonly": "no"}
        if password is not None:
            options["requirepass"] = password
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self.process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        tap.wait_until(lambda: self.ask("PING") is not None)

    def url(self, credentials="", rest=""):
        return f"redis://{credentials}127.0.0.1:{self.port}{rest}"

    def ask(self, *words):
        """The first line of the answer to a command, or None when nobody is there."""
        login = [["AUTH", self.password]] if self.password is not None else []
        answer = None
        try:
            with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as answers:
                connection.connect(self.path)
                for command in [*login, words]:
                    connection.sendall(" ".join([*command, "\r\n"]).encode())
                    answer = answers.readline().decode().rstrip()
        except OSError:
            return None
        return answer

    def stop(self):
        """Lets it answer nobody any more."""
        self.process.send_signal(signal.SIGSTOP)
