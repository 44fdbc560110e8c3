"""sneck show --deadlocks: circles of real processes."""

import json
import os
import shlex
import subprocess

import tap
from holder import Holder, Waiter, check, same, waiters

SNECK = shlex.quote(os.environ["SNECK"])


class Nested:
    """Has one lock when the constructor returns, and asks for another one below it when it is told."""

    def __init__(self, first, second):
        self.second = second
        command = f"echo in; read go; {SNECK} run {second} -- true"
        self.process = tap.start_sneck("run", first, "--", "sh", "-c", command, stderr=subprocess.DEVNULL)
        same(self.process.stdout.readline(), "in\n")

    def go_on(self):
        before = waiters(self.second)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        tap.wait_until(lambda: waiters(self.second) > before)


def circle_of(*names):
    """Processes that have one of the locks each, and wait for the next."""
    members = [Nested(name, names[(i + 1) % len(names)]) for i, name in enumerate(names)]
    for member in members:
        member.go_on()
    return members


def deadlocks():
    """What --json says, once whatever is going on has lasted for longer than the look takes."""
    done = tap.sneck("show", "--deadlocks", "--json")
    found = json.loads(done.stdout)["deadlocks"]
    same(done.returncode, 1 if found else 0)
    return found


def await_deadlocks():
    tap.wait_until(deadlocks)
    return deadlocks()


def test_a_circle_of_two():
    members = circle_of("a", "b")
    (circle,) = await_deadlocks()
    same(sorted(member["waits_for"] for member in circle), ["a", "b"])
    same(sorted(member["blocker"]["pid"] for member in circle), sorted(member.process.pid for member in members))
    assert all(member["blocker"]["holds"] and member["mode"] == "exclusive" for member in circle), circle
    text = check(tap.sneck("show", "--deadlocks"), 1).stdout
    lines = text.splitlines()
    same((lines[0], len(lines)), ("deadlock of 2", 3))
    host = os.uname().nodename
    by_lock = {line.split(" waits for ")[1].split(",")[0]: line for line in lines[1:]}
    assert by_lock["b"].endswith(f", held by {host}:{members[1].process.pid}"), text
    assert by_lock["a"].endswith(f", held by {host}:{members[0].process.pid}"), text


def test_a_circle_of_three_and_who_waits_behind_it_is_not_named():
    circle_of("a", "b", "c")
    behind = Waiter("b")
    (circle,) = await_deadlocks()
    same(sorted(member["waits_for"] for member in circle), ["a", "b", "c"])
    assert behind.process.pid not in [member["pid"] for member in circle], circle
    for i, member in enumerate(circle):
        # Each one's blocker is above the next one, who waits in its place.
        same(circle[(i + 1) % 3]["waits_for"], {"a": "b", "b": "c", "c": "a"}[member["waits_for"]])


def test_two_circles():
    circle_of("a", "b")
    circle_of("c", "d", "e")
    tap.wait_until(lambda: len(deadlocks()) == 2)
    same(sorted(len(circle) for circle in deadlocks()), [2, 3])


def test_one_that_holds_and_waits_itself():
    nested = Nested("b", "a")
    several = tap.start_sneck("run", "--also", "b", "a", "--", "true")
    tap.wait_until(lambda: waiters("b") == 1)
    nested.go_on()
    (circle,) = await_deadlocks()
    same(sorted(member["waits_for"] for member in circle), ["a", "b"])
    assert several.pid in [member["pid"] for member in circle], circle


def test_none():
    same(check(tap.sneck("show", "--deadlocks"), 0).stdout, "no deadlocks\n")
    same(check(tap.sneck("show", "--deadlocks", "-q"), 0).stdout, "")
    chain = [Nested("a", "b"), Nested("b", "c")]
    last = Holder("c")
    for member in chain:
        member.go_on()
    same(check(tap.sneck("show", "--deadlocks"), 0).stdout, "no deadlocks\n")
    same(deadlocks(), [])
    last.let_go()
    for member in chain:
        same(member.process.wait(), 0)


def test_a_circle_that_is_opened_is_gone():
    members = circle_of("a", "b")
    await_deadlocks()
    members[0].process.kill()
    tap.wait_until(lambda: not deadlocks())


def test_exit_codes():
    check(tap.sneck("show", "--deadlocks", "a"), 64)
    check(tap.sneck("show", "--deadlocks", "--store", "sqlite:///nonexistent/folder/file.db"), 69)


tap.main()
