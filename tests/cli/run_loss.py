"""sneck run: what happens when the lock is lost, and when sneck or its guard is stopped or killed."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

import tap
from holder import Waiter, check, same, show
from running import Clock, Run, WAITS, is_alive, is_free, kill_with_guard, members, python, read, wait_until_gone

# A lease of which 1.798 s can be used; told to stop at 1.498 s after the last renewal, killed at 1.798 s.
SHORT = ["--lease", "2s", "--kill-after", "300ms"]
USABLE_S = 1.8
SLACK_S = 2.0 * tap.PATIENCE  # what a loaded machine may need on top

# A command and a grandchild that hear of TERM and do not care.
STUBBORN = python("""
    grandchild("ignore(signal.SIGTERM); say('ready'); wait()")
    ignore(signal.SIGTERM)
    wait()
""")


def break_lock(name):
    check(tap.sneck("break", name, "--token", str(show(name)["token"]), "--reason", "a test"), 0)


class Successor:
    """Waits for the lock with a `run`; when that has it, it says how many of the group before it were still alive."""

    def __init__(self, name, group):
        code = f"""
            alive = []
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    fields = open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()
                except OSError:
                    continue
                if fields[2] == "{group}" and fields[0] not in "ZX":
                    alive.append(pid)
            say("left", len(alive))
        """
        self.run = Run("-v", name, command=python(code), ready=None)
        assert "waiting for" in self.run.process.stderr.readline()

    def check(self):
        self.run.expect("left 0")
        self.run.ends_with(0)


# ---- Loss while sneck runs ----


def test_a_broken_lock_stops_the_command_with_79():
    held = Run(*SHORT, "door", command=python("tell_signals(signal.SIGTERM); say('ready'); wait()"))
    break_lock("door")
    held.expect("got SIGTERM")
    held.ends_with(79)
    assert "lost the lock door" in held.errors()


def test_79_beats_the_code_of_a_command_that_ends_when_told():
    held = Run(*SHORT, "door", command=python("end_on(signal.SIGTERM, 0); say('ready'); wait()"))
    break_lock("door")
    held.ends_with(79)


def test_another_signal_to_stop_with():
    held = Run(*SHORT, "--signal", "INT", "door", command=python("tell_signals(signal.SIGINT); say('ready'); wait()"))
    break_lock("door")
    held.expect("got SIGINT")
    held.ends_with(79)


def test_a_stopped_command_is_continued_so_that_it_hears_of_it():
    held = Run(*SHORT, "door", command=python("tell_signals(signal.SIGTERM); say('ready'); wait()"))
    os.kill(held.command, signal.SIGSTOP)
    break_lock("door")
    held.expect("got SIGTERM")
    held.ends_with(79)


def test_json_tells_of_the_loss():
    held = Run(*SHORT, "--json", "door", command=WAITS)
    break_lock("door")
    held.ends_with(79)
    events = [event for event in map(json.loads, held.errors().splitlines()) if event["event"] != "waiting"]
    same([event["event"] for event in events], ["acquired", "lost", "exit"])
    assert events[1]["lock"] == "door" and events[1]["cause"], events[1]
    same(events[2]["code"], 79)


def test_warn_lets_the_command_run_on_with_its_own_code():
    held = Run(*SHORT, "--on-lost", "warn", "door", command=python("tell_signals(signal.SIGTERM); say('ready'); input(); say(*signal.sigpending()); sys.exit(4)"))
    break_lock("door")
    assert "lost the lock door" in held.process.stderr.readline()
    held.answer()
    held.ends_with(4)
    same(held.process.stdout.read(), "\n")  # no signal came


def test_one_of_several_locks_is_enough_to_stop():
    held = Run(*SHORT, "a", "--also", "b", command=WAITS)
    break_lock("b")
    held.ends_with(79)
    assert "lost the lock b" in held.errors()
    assert is_free("a") and is_free("b")


def test_a_lease_that_is_not_renewed_ends():
    clock = Clock()
    held = Run("--lease", "1s", "--kill-after", "100ms", "--renew", "never", "door",
               command=python("tell_signals(signal.SIGTERM); say('ready'); wait()"))
    held.expect("got SIGTERM")
    assert clock.read() >= 0.5
    held.ends_with(79)


def test_a_lost_store_stops_the_command_before_the_lease_ends():
    clock = Clock()
    held = Run(*SHORT, "door", command=python("tell_signals(signal.SIGTERM); say('ready'); wait()"))
    with open("store.db", "r+b") as file:
        file.truncate(0)
        file.write(os.urandom(8192))  # from here on no renewal can succeed
    held.expect("got SIGTERM")
    held.ends_with(79)
    assert clock.read() < USABLE_S + SLACK_S


# ---- sneck is killed ----


def test_killing_sneck_stops_the_command_at_once():
    held = Run("door", command=python("tell_signals(signal.SIGTERM); say('ready'); wait()"))
    command = held.command
    held.process.kill()
    held.expect("got SIGTERM")
    os.kill(command, signal.SIGKILL)
    tap.wait_until(lambda: is_free("door"))


def test_killing_sneck_kills_stubborn_grandchildren_and_then_frees_the_lock():
    held = Run("--kill-after", "300ms", "door", command=STUBBORN)
    group = held.command
    same(len(members(group)), 2)
    next_one = Successor("door", group)
    clock = Clock()
    held.process.kill()
    wait_until_gone(group)
    next_one.check()  # long before the lease of 30 s ends
    assert clock.read() < 5 * tap.PATIENCE


def test_killing_sneck_releases_several_locks():
    held = Run("--kill-after", "100ms", "a", "--also", "b", command=STUBBORN)
    held.process.kill()
    tap.wait_until(lambda: is_free("a") and is_free("b"))


def test_the_guard_goes_when_its_work_is_done():
    held = Run("--kill-after", "100ms", "door", command=STUBBORN)
    guard = held.guard
    held.process.kill()
    tap.wait_until(lambda: not is_alive(guard))
    assert is_free("door")


def test_the_guard_goes_with_an_ordinary_end():
    held = Run("door", command=WAITS)
    guard = held.guard
    held.send(signal.SIGTERM)
    held.ends_with(143)
    tap.wait_until(lambda: not is_alive(guard))


def test_killing_sneck_while_it_waits_for_min_hold_frees_the_lock():
    held = Run("--min-hold", "1h", "door", command=python("say('ready')"))
    same(held.process.stdout.read(), "")
    held.process.kill()
    tap.wait_until(lambda: is_free("door"))


def test_killing_a_run_with_warn_stops_the_command_too():
    held = Run("--on-lost", "warn", "--kill-after", "100ms", "door", command=STUBBORN)
    group = held.command
    held.process.kill()
    wait_until_gone(group)
    tap.wait_until(lambda: is_free("door"))


@tap.time_limit(60)
def test_killed_at_any_moment_nothing_runs_on():
    """Whatever sneck was about to do: the command never outlives it, and the lock is free soon."""
    random.seed(4)
    mark = f"1000.{os.getpid()}"
    for _ in range(tap.scaled(400)):
        process = tap.start_sneck("run", "--kill-after", "50ms", "door", "--", "sleep", mark)
        time.sleep(random.uniform(0, 0.02))
        process.kill()
        process.wait()
        check(tap.sneck("run", "-w", "10", "door", "--", "true"), 0)
        commands = {pid: read(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()}
        same([pid for pid, command in commands.items() if command == f"sleep\0{mark}\0".encode() and is_alive(pid)], [])


# ---- sneck is stopped ----


def test_a_stopped_sneck_loses_the_command_by_the_deadline():
    held = Run(*SHORT, "door", command=STUBBORN)
    group = held.command
    next_one = Successor("door", group)
    clock = Clock()
    held.send(signal.SIGSTOP)
    wait_until_gone(group, seconds=USABLE_S + SLACK_S)
    next_one.check()
    held.send(signal.SIGCONT)
    held.ends_with(79)
    assert "lost the lock door" in held.errors()


def test_a_stopped_sneck_tells_the_command_first():
    held = Run(*SHORT, "door", command=python("tell_signals(signal.SIGTERM); say('ready'); wait()"))
    held.send(signal.SIGSTOP)
    held.expect("got SIGTERM")
    group = held.command
    wait_until_gone(group)
    held.send(signal.SIGCONT)
    held.ends_with(79)


def test_the_lock_of_a_stopped_sneck_is_released_by_its_guard():
    held = Run("--lease", "8s", "--kill-after", "5s", "--renew", "1s", "door",
               command=python("end_on(signal.SIGTERM, 0); say('ready'); wait()"))
    held.send(signal.SIGSTOP)
    clock = Clock()
    tap.wait_until(lambda: is_free("door"))  # told at 2.2 s, gone then, released half a second later; the lease has 8 s
    assert clock.read() < 6 * tap.PATIENCE
    held.send(signal.SIGCONT)
    held.ends_with(79)


def test_a_sneck_that_is_stopped_for_a_moment_loses_nothing():
    held = Run("--lease", "8s", "--kill-after", "1s", "door", command=python("say('ready'); input(); sys.exit(3)"))
    held.send(signal.SIGSTOP)
    tap.wait_until(lambda: read(f"/proc/{held.pid}/stat").rpartition(b")")[2].split()[0] == b"T")
    held.send(signal.SIGCONT)
    held.answer()
    held.ends_with(3)


def test_with_warn_a_stopped_sneck_loses_the_lock_and_not_the_command():
    held = Run(*SHORT, "--on-lost", "warn", "door", command=python("tell_signals(signal.SIGTERM); say('ready'); input(); say(*signal.sigpending()); sys.exit(4)"))
    held.send(signal.SIGSTOP)
    tap.wait_until(lambda: is_free("door"))
    held.send(signal.SIGCONT)
    held.answer()
    held.ends_with(4)
    same(held.process.stdout.read(), "\n")  # no signal came


def full_pipe():
    """The end to write into of a pipe that takes no more; the other one must stay open."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x")
    os.set_blocking(writer, True)
    return reader, writer


def test_a_sneck_that_hangs_loses_the_command_by_the_deadline():
    """It hangs in what it has to say about the loss."""
    reader, writer = full_pipe()
    held = Run(*SHORT, "door", command=STUBBORN, stderr=writer)
    group = held.command
    break_lock("door")
    wait_until_gone(group, seconds=USABLE_S + SLACK_S)
    assert is_alive(held.pid)
    while os.read(reader, 65536)[-1:] == b"x":
        pass
    held.ends_with(79)


# ---- The guard is killed ----


def test_another_guard_takes_over():
    held = Run("--kill-after", "100ms", "door", command=STUBBORN)
    group = held.command
    for _ in range(3):
        guard = held.guard
        os.kill(guard, signal.SIGKILL)
        tap.wait_until(lambda: held.guard not in (None, guard) and read(f"/proc/{held.guard}/comm") == b"sneck-guard\n")
        same(len(members(group)), 2)
    held.process.kill()
    wait_until_gone(group)
    tap.wait_until(lambda: is_free("door"))


def test_the_command_does_not_notice_the_death_of_the_guard():
    held = Run("door", command=python("say('ready'); input(); sys.exit(6)"))
    os.kill(held.guard, signal.SIGKILL)
    held.answer()
    held.ends_with(6)


def test_a_guard_that_is_stopped_is_not_missed():
    held = Run(*SHORT, "door", command=STUBBORN)
    guard = held.guard
    os.kill(guard, signal.SIGSTOP)
    break_lock("door")
    held.ends_with(79)
    assert is_free("door")
    os.kill(guard, signal.SIGCONT)
    tap.wait_until(lambda: not is_alive(guard))


def test_the_guard_hears_no_signal():
    held = Run("door", command=WAITS)
    guard = held.guard
    [blocked] = [line.split()[1] for line in read(f"/proc/{guard}/status").decode().splitlines() if line.startswith("SigBlk")]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1, signal.SIGTSTP):
        assert int(blocked, 16) >> (number - 1) & 1, number
    same(os.getsid(guard), guard)
    held.send(signal.SIGTERM)
    held.ends_with(143)


def test_when_sneck_and_guard_are_killed_the_command_runs_on_and_the_lock_is_free_at_once():
    """Nobody is left who could stop it. The next holder's token is higher: a resource that checks it is safe."""
    held = Run("door", command=python("tell_signals(signal.SIGTERM, signal.SIGHUP); say('ready'); say(os.environ['SNECK_TOKEN']); wait()"))
    command, token = held.command, int(held.line())
    next_one = Waiter("door")
    clock = Clock()
    kill_with_guard(held)
    next_one.await_turn()
    assert clock.read() < 20 * tap.PATIENCE, "the lease has 30 s"
    assert next_one.token > token
    assert is_alive(command)


def test_the_password_of_a_store_is_not_among_the_guards_arguments():
    held = Run("door", command=WAITS)
    same(read(f"/proc/{held.guard}/cmdline"), b"sneck\0__guard\0")


def test_the_hidden_subcommand_refuses_people():
    check(tap.sneck("__guard"), 64)


tap.main()
