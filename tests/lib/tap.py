"""A very small test runner that prints TAP.

    import tap

    def test_a_free_lock_is_reported_as_free():
        assert tap.sneck("test", "door").returncode == 0

    tap.main()

Each function test_* runs in a process of its own, in an empty directory of its own and with a store of its own in
SNECK_STORE. It fails by an exception, by its time limit, or by dying. Whatever it started is killed afterwards.
"""

import ctypes
import inspect
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

TEST_SECONDS = 30
PATIENCE = float(os.environ.get("SNECK_TEST_PATIENCE", "1"))  # stretches time limits where everything is slower
PR_SET_CHILD_SUBREAPER = 36
EXIT_SKIPPED = 77


class Skip(Exception):
    """Raise it with the reason why a test cannot run here."""


def time_limit(seconds):
    """Decorator: gives a test another time limit than TEST_SECONDS."""

    def decorate(function):
        function.seconds = seconds
        return function

    return decorate


def scaled(full):
    """The share of `full` that this run is to try: all of it in ./dev prove, a tenth otherwise, but at least 1."""
    return max(1, int(full * float(os.environ.get("SNECK_TEST_SCALE", "0.1"))))


def figure(text):
    """Prints a figure worth keeping; ./dev prove shows it."""
    print("# figure:", text, flush=True)


def sneck(*arguments, **options):
    """Runs the command and returns the finished process, with its output as text."""
    return subprocess.run([os.environ["SNECK"], *arguments], capture_output=True, text=True, **options)


def start_sneck(*arguments, **options):
    """Starts the command and returns the running process, with its input and output as pipes of text."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([os.environ["SNECK"], *arguments], **{**pipes, **options})


def wait_until(condition, seconds=10):
    """Waits until condition() is true; an AssertionError if it does not become so in time."""
    deadline = time.monotonic() + seconds * PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds * PATIENCE} s"
        time.sleep(0.005)


def main():
    """Runs every test_* function of the calling script, or those named on its command line, and exits."""
    functions = inspect.currentframe().f_back.f_globals
    names = sys.argv[1:] or [name for name in functions if name.startswith("test_")]
    # Orphans that a test leaves become our children, where kill_leftovers finds them.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print(f"1..{len(names)}", flush=True)
    failures = 0
    for number, name in enumerate(names, 1):
        status = run_apart(functions[name])
        passed = status in (0, EXIT_SKIPPED)
        failures += not passed
        directive = " # SKIP" if status == EXIT_SKIPPED else ""
        print(f"{'ok' if passed else 'not ok'} {number} - {name}{directive}", flush=True)
    sys.exit(1 if failures else 0)


def run_apart(function):
    """Runs one test in a child process; returns its exit status, negative for a signal, None for out of time."""
    directory = tempfile.mkdtemp(prefix="sneck-test-")
    child = os.fork()
    if child == 0:
        run_in_child(function, directory)
    status = wait_for(child, getattr(function, "seconds", TEST_SECONDS) * PATIENCE)
    kill_leftovers()
    shutil.rmtree(directory, ignore_errors=True)
    return status


def run_in_child(function, directory):
    status = 1
    try:
        usual_signals()
        os.chdir(directory)
        os.environ["SNECK_STORE"] = f"sqlite://{directory}/store.db"
        function()
        status = 0
    except Skip as reason:
        comment(f"skip: {reason}")
        status = EXIT_SKIPPED
    except BaseException:
        comment(traceback.format_exc())
    finally:
        sys.stdout.flush()
        os._exit(status)


def usual_signals():
    """A test that runs in the background of a script must not inherit that interrupts are ignored there."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def wait_for(child, seconds):
    pidfd = os.pidfd_open(child)
    ended, _, _ = select.select([pidfd], [], [], seconds)
    os.close(pidfd)
    if not ended:
        comment(f"took longer than {seconds} s")
        return None
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        comment(f"died of {signal.Signals(-status).name}")
    return status


def kill_leftovers():
    """Kills what the test left behind. The children of what dies here become ours: go on until there are none."""
    while pids := [int(pid) for pid in open("/proc/thread-self/children").read().split()]:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def comment(text):
    for line in text.rstrip().split("\n"):
        print("#", line, flush=True)
