"""Shared locks, slots, latches and versions on the command line; each test on the embedded store and on Redis."""

import json
import os

import tap
from holder import Holder, Waiter, check, same, show
from redis_server import RedisServer


def test_shared_holders_stand_side_by_side():
    first, second = Holder("door", "-s"), Holder("door", "--shared")
    same([holder["mode"] for holder in show("door")["holders"]], ["shared", "shared"])
    check(tap.sneck("run", "-n", "door", "--", "true"), 75)
    writer = Waiter("door")
    check(tap.sneck("run", "-s", "-n", "door", "--", "true"), 75)  # whoever waits alone is not overtaken
    same((first.let_go(), second.let_go()), (0, 0))
    writer.await_turn()
    same(show("door")["holder"]["mode"], "exclusive")
    same(writer.let_go(), 0)


def test_a_shared_run_has_the_writers_token():
    alone = check(tap.sneck("run", "door", "--", "sh", "-c", "echo $SNECK_TOKEN"), 0).stdout
    shared = check(tap.sneck("run", "-s", "door", "--", "sh", "-c", "echo $SNECK_TOKEN"), 0).stdout
    same(int(shared), int(alone))


def test_slots_let_so_many_in():
    first, second = Holder("seat", "--slots", "2"), Holder("seat", "--slots", "2")
    assert second.token > first.token
    same(show("seat")["permits"], 2)
    check(tap.sneck("run", "-n", "--slots", "2", "seat", "--", "true"), 75)
    third = Waiter("seat", "--slots", "2")
    same(first.let_go(), 0)
    third.await_turn()
    same((second.let_go(), third.let_go()), (0, 0))


def test_the_slot_of_one_that_was_killed_is_free():
    dead = Holder("seat", "--slots", "1", "--lease", "2s")  # the embedded store knows at once, Redis by the lease
    waiter = Waiter("seat", "--slots", "1")
    dead.process.kill()
    waiter.await_turn()
    same(waiter.let_go(), 0)


def test_shared_and_slots_exclude_each_other():
    done = check(tap.sneck("run", "-s", "--slots", "2", "door", "--", "true"), 64)
    assert "exclude" in done.stderr, done.stderr


def test_a_latch_counts_down():
    check(tap.sneck("latch", "wait", "-w", "0", "l"), 0)
    check(tap.sneck("latch", "set", "-c", "2", "l"), 0)
    check(tap.sneck("latch", "set", "l"), 1)
    check(tap.sneck("latch", "wait", "-w", "50ms", "l"), 75)
    waiter = tap.start_sneck("latch", "wait", "l")
    check(tap.sneck("latch", "down", "l"), 0)
    same(check(tap.sneck("latch", "count", "l"), 0).stdout, "1\n")
    same(json.loads(check(tap.sneck("latch", "count", "--json", "l"), 0).stdout), {"name": "l", "count": 1})
    check(tap.sneck("latch", "down", "l"), 0)
    same(waiter.wait(), 0)


def test_a_version_is_raised_once():
    same(check(tap.sneck("version", "get", "v"), 0).stdout, "0\n")
    check(tap.sneck("version", "bump", "--expected", "0", "v"), 0)
    check(tap.sneck("version", "bump", "--expected", "0", "v"), 1)
    version = json.loads(check(tap.sneck("version", "get", "--json", "v"), 0).stdout)["version"]
    assert version > 0
    check(tap.sneck("version", "bump", "--expected", str(version), "v"), 0)


def test_wrong_usage_is_64():
    for arguments in (["latch", "l"], ["latch", "lift", "l"], ["latch", "set", "-c", "0", "l"], ["version", "v"],
                      ["version", "bump", "v"], ["version", "bump", "--expected", "-1", "v"]):
        check(tap.sneck(*arguments), 64)


def on_redis(function):
    def run():
        os.environ["SNECK_STORE"] = RedisServer().url()
        function()
    return run


for name, function in list(globals().items()):
    if name.startswith("test_"):
        globals()[f"{name}_on_redis"] = on_redis(function)

tap.main()
