"""A `sneck run` whose command talks to the test, and a look at the processes behind it."""

import os
import signal
import sys
import textwrap
import time

import tap

# What every command below can use. Signals are waited for and not handled: a handler of Python may run late.
PRELUDE = """
import os, signal, subprocess, sys, time

told = set()

def say(*words):
    print(*words, flush=True)

def tell_signals(*numbers):  # from now on wait() tells of these
    told.update(numbers)
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

def ignore(*numbers):
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)

def end_on(number, code):
    signal.signal(number, lambda *_: os._exit(code))

def wait():
    while told:
        say("got", signal.Signals(signal.sigwait(told)).name)
    while True:
        time.sleep(0.05)

def grandchild(code):
    return subprocess.Popen([sys.executable, "-c", PRELUDE + code])
"""
PRELUDE = f"PRELUDE = {PRELUDE!r}\nexec(PRELUDE)\n"


def python(code):
    """A command line that runs this code, with the helpers above."""
    return [sys.executable, "-c", PRELUDE + textwrap.dedent(code)]


WAITS = python("say('ready'); wait()")


class Run:
    """A `sneck run` that has said "ready" when the constructor returns (unless ready=None)."""

    def __init__(self, *arguments, command=None, ready="ready", **options):
        if command is not None:
            arguments = [*arguments, "--", *command]
        self.process = tap.start_sneck("run", *arguments, **options)
        self.pid = self.process.pid
        if ready is not None:
            self.expect(ready)

    def expect(self, text):
        """Reads a line of the command's output, which must be this."""
        line = self.process.stdout.readline()
        assert line == text + "\n", f"{line!r} is not {text!r}; stderr: {self.errors() if not line else ''}"

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def errors(self):
        return self.process.stderr.read()

    def answer(self):
        """Lets a command go on that reads a line."""
        self.process.stdin.write("\n")
        self.process.stdin.close()

    def send(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=20):
        return self.process.wait(seconds * tap.PATIENCE)

    def ends_with(self, code):
        actual = self.wait()
        assert actual == code, f"exit code {actual}, not {code}; stderr: {self.errors()}"

    @property
    def command(self):
        """The pid of the command, which is its process group too."""
        found = [pid for pid in children(self.pid) if not is_guard(pid)]
        assert len(found) == 1, found
        return found[0]

    @property
    def guard(self):
        """The pid of the guard, or None."""
        found = [pid for pid in children(self.pid) if is_guard(pid) and is_alive(pid)]
        return found[0] if found else None


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def children(pid):
    return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]


def is_guard(pid):
    return b"__guard" in read(f"/proc/{pid}/cmdline") or read(f"/proc/{pid}/comm") == b"sneck-guard\n"


def status(pid):
    """The fields of /proc/PID/stat after the name: state, parent, group, …"""
    return read(f"/proc/{pid}/stat").decode(errors="replace").rpartition(")")[2].split()


def state(pid):
    fields = status(pid)
    return fields[0] if fields else "gone"


def is_alive(pid):
    return state(pid) not in ("gone", "Z", "X")


def members(group):
    """The processes of a group that are alive."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if is_alive(pid) and status(pid)[2:3] == [str(group)]]


def is_free(name):
    return tap.sneck("test", "-q", name).returncode == 0


def wait_until_stopped(pid):
    tap.wait_until(lambda: state(pid) == "T")


def wait_until_gone(group, seconds=10):
    tap.wait_until(lambda: not members(group), seconds)


def kill_with_guard(run):
    """Kills a sneck and its guard, so that neither can do anything about the death of the other."""
    guard = run.guard
    run.send(signal.SIGSTOP)
    wait_until_stopped(run.pid)
    os.kill(guard, signal.SIGKILL)
    run.process.kill()
    run.wait()


def stop_and_continue(process):
    """Sends TSTP and CONT in quick succession, again and again: after each pair the process must wait as before."""
    for number in range(tap.scaled(10000)):
        process.send_signal(signal.SIGTSTP)
        for _ in range(number % 200):
            pass  # so that the other one comes at each moment of what follows
        process.send_signal(signal.SIGCONT)
        tap.wait_until(lambda: any(state(process.pid) == "S" for _ in range(20)))  # it is so in no time


class Clock:
    """Seconds since it was made."""

    def __init__(self):
        self.start = time.monotonic()

    def read(self):
        return time.monotonic() - self.start


# What holds on every server.

SHORT = ["--lease", "2s", "--kill-after", "300ms"]
TELLS = python("tell_signals(signal.SIGTERM); say('ready'); wait()")


def guard_replaces_sneck():
    """A sneck that is killed: its guard ends the command and releases the lock, long before the lease ends."""
    held = Run("--kill-after", "100ms", "door", command=WAITS)
    group = held.command
    clock = Clock()
    held.process.kill()
    wait_until_gone(group)
    tap.wait_until(lambda: is_free("door"))
    assert clock.read() < 20 * tap.PATIENCE, "the lease has 30 s"


def silence_stops_command(server):
    """A server that does not answer any more: the command is stopped before the lease ends."""
    held = Run(*SHORT, "door", command=TELLS)
    group = held.command
    server.stop()
    held.expect("got SIGTERM")
    wait_until_gone(group, seconds=1.8 + 2)
    held.ends_with(79)
