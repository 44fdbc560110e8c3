"""Processes that hold a lock or wait for it, for tests of what others see of them."""

import json
import os
import subprocess

import tap


class Holder:
    """A `sneck hold` that has the lock when the constructor returns."""

    def __init__(self, name, *flags, **options):
        self.process = start(name, *flags, **options)
        self.read()

    def read(self):
        line = self.process.stdout.readline()
        assert line, f"not acquired: {self.process.stderr.read()}"
        self.token = json.loads(line)["token"]

    def let_go(self):
        """Gives the lock back and returns the exit code."""
        self.process.stdin.close()
        return self.process.wait()


class Waiter(Holder):
    """A `sneck hold` that stands in the queue when the constructor returns; await_turn() waits until it has the lock."""

    def __init__(self, name, *flags, **options):
        before = waiters(name)
        self.process = start(name, *flags, **options)
        tap.wait_until(lambda: waiters(name) > before)

    def await_turn(self):
        self.read()


def start(name, *flags, **options):
    return tap.start_sneck("hold", "--json", *flags, name, **{"stderr": subprocess.PIPE, **options})


def show(name):
    """What `sneck show --json` says."""
    done = tap.sneck("show", "--json", name)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def waiters(name):
    return show(name)["waiter_count"]


def store_path():
    return os.environ["SNECK_STORE"].removeprefix("sqlite://")


def same(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def check(done, code):
    """Fails with what was said unless the exit code is `code`."""
    assert done.returncode == code, f"exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done
