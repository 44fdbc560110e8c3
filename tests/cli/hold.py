"""sneck hold: one line when it has the lock, then until stdin ends or a signal comes."""

import json
import os
import signal
import subprocess

import tap
from holder import Holder, Waiter, check, same, show
from running import Clock, is_free, stop_and_continue


def start(*arguments, **options):
    return tap.start_sneck("hold", *arguments, **options)


def test_it_prints_the_token_and_the_name():
    process = start("the door")
    token, name = process.stdout.readline().rstrip("\n").split(" ", 1)
    same((int(token), name), (show("the door")["token"], "the door"))
    same(show("the door")["holder"]["pid"], process.pid)


def test_json():
    process = start("--json", "door")
    acquired = json.loads(process.stdout.readline())
    same((acquired["event"], acquired["lock"], acquired["token"]), ("acquired", "door", show("door")["token"]))


def test_it_holds_until_stdin_ends():
    holder = Holder("door")
    assert not is_free("door")
    holder.process.stdin.write("what is written does not matter\n" * 1000)
    holder.process.stdin.flush()
    assert not is_free("door")
    same(holder.let_go(), 0)
    assert is_free("door")


def test_a_stdin_that_has_ended_already_is_a_short_hold():
    done = check(tap.sneck("hold", "door", stdin=subprocess.DEVNULL), 0)
    assert done.stdout.endswith(" door\n"), done.stdout
    closed = subprocess.run(["sh", "-c", '"$SNECK" hold door <&-'], capture_output=True, text=True)
    same(closed.returncode, 0)


def test_a_signal_ends_the_hold_with_0():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        holder = Holder("door")
        holder.process.send_signal(number)
        same(holder.process.wait(), 0)
        assert is_free("door")


def test_a_signal_ends_the_wait_with_its_code():
    holder = Holder("door")
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        waiter = Waiter("door")
        waiter.process.send_signal(number)
        same(waiter.process.wait(), code)
        same(waiter.process.stdout.read(), "")


def test_busy():
    holder = Holder("door")
    check(tap.sneck("hold", "-n", "door"), 75)
    check(tap.sneck("hold", "-w", "0.2", "door"), 75)
    same(check(tap.sneck("hold", "-n", "-E", "0", "door"), 0).stderr, "")


def test_a_broken_lock_is_79():
    holder = Holder("door", "--lease", "1s")
    check(tap.sneck("break", "door", "--token", str(holder.token), "--reason", "a test"), 0)
    same(holder.process.wait(), 79)
    assert "lost" in holder.process.stderr.read()


def test_a_hold_that_was_stopped_past_its_lease_is_79():
    holder = Holder("door", "--lease", "500ms")
    holder.process.send_signal(signal.SIGSTOP)
    tap.wait_until(lambda: is_free("door"))
    holder.process.send_signal(signal.SIGCONT)
    same(holder.process.wait(), 79)


def test_it_goes_on_after_stops_in_quick_succession():
    holder = Holder("door", process_group=0)
    stop_and_continue(holder.process)
    same(holder.let_go(), 0)


def test_a_wait_goes_on_after_stops_in_quick_succession():
    holder = Holder("door")
    waiter = Waiter("door", process_group=0)
    stop_and_continue(waiter.process)
    holder.let_go()
    waiter.await_turn()
    same(waiter.let_go(), 0)


def test_max_hold_is_79_and_frees_the_lock():
    clock = Clock()
    holder = Holder("door", "--max-hold", "300ms")
    same(holder.process.wait(), 79)
    assert clock.read() >= 0.3
    assert is_free("door")


def test_killed_it_frees_the_lock():
    holder = Holder("door")
    holder.process.kill()
    tap.wait_until(lambda: is_free("door"))


def test_fair_waiters_get_it_in_their_order():
    holder = Holder("door", "--fair")
    waiters = [Waiter("door", "--fair") for _ in range(3)]
    tokens = []
    holder.let_go()
    for waiter in waiters:
        waiter.await_turn()
        tokens.append(waiter.token)
        waiter.let_go()
    same(tokens, sorted(tokens))


def test_a_token_that_cannot_be_written_is_70():
    for flags in ([], ["--json"]):
        with open("/dev/full", "w") as full:
            process = start(*flags, "door", stdout=full)
            same(process.wait(), 70)
        assert "stdout" in process.stderr.read()
        assert is_free("door")


def test_wrong_usage_is_64():
    for arguments in ([], ["a", "b"], ["--lease", "soon", "a"], ["--also", "b", "a"], [""], ["a\nb"]):
        done = check(tap.sneck("hold", *arguments), 64)
        assert done.stderr.startswith("sneck: "), done.stderr


tap.main()
