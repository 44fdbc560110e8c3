"""sneck break: exactly the hold that was looked at, and none other."""

import json

import tap
from holder import Holder, Waiter, check, same, show


def break_door(token, *flags, reason="a test"):
    return tap.sneck("break", "door", "--token", str(token), "--reason", reason, *flags)


def test_the_right_token_ends_the_hold():
    holder = Holder("door")
    done = check(break_door(holder.token), 0)
    same(done.stdout, "")
    assert str(holder.token) in done.stderr, done.stderr
    check(tap.sneck("test", "door"), 0)


def test_another_token_is_1_and_changes_nothing():
    holder = Holder("door")
    for token in (holder.token - 1, holder.token + 1, 1, 2**64 - 1):
        done = check(break_door(token), 1)
        assert done.stderr.startswith("sneck: "), done.stderr
    same(show("door")["token"], holder.token)
    same(show("door")["incidents"], [])
    same(holder.let_go(), 0)


def test_a_free_lock_is_1():
    check(break_door(5), 1)
    holder = Holder("door")
    holder.let_go()
    check(break_door(holder.token), 1)


def test_the_token_of_the_hold_before_is_1():
    first = Holder("door")
    first.let_go()
    second = Holder("door")
    check(break_door(first.token), 1)
    same(show("door")["token"], second.token)


def test_the_next_waiter_gets_it_with_a_higher_token():
    holder = Holder("door")
    waiter = Waiter("door")
    check(break_door(holder.token), 0)
    waiter.await_turn()
    assert waiter.token > holder.token
    same(show("door")["holder"]["pid"], waiter.process.pid)


def test_the_old_holder_learns_that_it_lost():
    holder = Holder("door", "--lease", "1s")
    check(break_door(holder.token), 0)
    same(holder.process.wait(), 79)


def test_json():
    holder = Holder("door")
    done = check(break_door(holder.token, "--json", reason="why not"), 0)
    same(json.loads(done.stdout), {"name": "door", "broken_token": holder.token, "reason": "why not"})
    same(done.stderr, "")
    error = json.loads(check(break_door(holder.token, "--json"), 1).stderr)
    same((error["event"], error["status"]), ("error", "SNECK_CONFLICT"))


def test_quiet():
    holder = Holder("door")
    same(check(break_door(holder.token, "-q"), 0).stderr, "")


def test_usage_errors_are_64():
    holder = Holder("door")
    token = str(holder.token)
    for arguments in (
        ["door"],
        ["door", "--token", token],
        ["door", "--reason", "x"],
        ["--token", token, "--reason", "x"],
        ["door", "--token", "0", "--reason", "x"],
        ["door", "--token", "-1", "--reason", "x"],
        ["door", "--token", "12x", "--reason", "x"],
        ["door", "--token", "99999999999999999999999", "--reason", "x"],
        ["door", "--token", token, "--reason", ""],
        ["door", "--token", token, "--reason", "x" * 201],
        ["door", "--token", token, "--reason", "a\x1bb"],
        ["a\nb", "--token", token, "--reason", "x"],
    ):
        check(tap.sneck("break", *arguments), 64)
    same(show("door")["token"], holder.token)


def test_bad_store_78_and_69():
    check(break_door(1, "--store", "warp:"), 78)
    check(break_door(1, "--store", "sqlite:///nonexistent/folder/file.db"), 69)


tap.main()
