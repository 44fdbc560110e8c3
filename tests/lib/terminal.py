"""A terminal with a shell that has job control, for tests."""

import os
import pty
import re
import select
import struct
import termios
import time
import fcntl

import tap

CTRL_C = "\x03"
CTRL_Z = "\x1a"
BASH = ["bash", "--norc", "--noprofile", "--noediting", "-i"]


class Terminal:
    """A process on a terminal of its own: a shell, unless another command is given."""

    def __init__(self, *command, columns=200):
        command = command or BASH
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(PS1="", PS2="", TERM="xterm")
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        self.seen = ""  # everything that was not expected yet

    def type(self, text):
        os.write(self.fd, text.encode())

    def run(self, line):
        """Types a command line."""
        self.type(line + "\n")

    def expect(self, pattern, seconds=10):
        """Waits until the pattern is on the screen, and returns the match; what stands before it is forgotten."""
        deadline = time.monotonic() + seconds * tap.PATIENCE
        while not (match := re.search(pattern, self.seen)):
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no {pattern!r} on the terminal after {seconds} s: {self.seen!r}"
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"the terminal has ended without {pattern!r}: {self.seen!r}") from None
        self.seen = self.seen[match.end() :]
        return match

    def expect_code(self, code):
        """Asks the shell for the exit code of the last command."""
        self.run("echo code=$?.")
        match = self.expect(r"code=(\d+)\.")
        assert int(match[1]) == code, f"exit code {match[1]}, not {code}"
