"""sneck show: one lock, its queue and its history."""

import json
import os
import signal
import time

import tap
from holder import Holder, Waiter, check, same, show
from redis_server import RedisServer


def test_a_lock_that_nobody_ever_used_is_free():
    same(check(tap.sneck("show", "door"), 0).stdout, "door: free\n")
    lock = show("door")
    same((lock["held"], lock["token"], lock["waiters"], lock["incidents"]), (False, 0, [], []))


def test_the_holder_and_its_token():
    holder = Holder("door", "--why", "painting it")
    text = check(tap.sneck("show", "door"), 0).stdout
    assert text.startswith(f"door: held, token {holder.token}\n"), text
    assert f"{os.uname().nodename}:{holder.process.pid}  for " in text and "why   painting it" in text, text
    lock = show("door")
    same((lock["held"], lock["fair"], lock["token"]), (True, False, holder.token))
    same((lock["holder"]["pid"], lock["holder"]["why"]), (holder.process.pid, "painting it"))


def test_a_fair_hold_says_so():
    holder = Holder("door", "--fair")
    same(show("door")["fair"], True)
    assert ", fair\n" in tap.sneck("show", "door").stdout
    holder.let_go()


def test_a_released_lock_keeps_its_last_token():
    holder = Holder("door")
    holder.let_go()
    same(show("door")["token"], holder.token)
    same(tap.sneck("show", "door").stdout, f"door: free, last token {holder.token}\n")


def test_the_queue_is_in_order():
    holder = Holder("door", "--fair")
    queue = [Waiter("door", "--fair", "--why", f"number {i}") for i in range(4)]
    lock = show("door")
    same([waiter["pid"] for waiter in lock["waiters"]], [waiter.process.pid for waiter in queue])
    same([waiter["why"] for waiter in lock["waiters"]], [f"number {i}" for i in range(4)])
    text = tap.sneck("show", "door").stdout
    assert "queue, 4 waiting" in text, text
    assert text.index("number 0") < text.index("number 1") < text.index("number 3"), text
    holder.let_go()
    queue[0].await_turn()
    same(show("door")["holder"]["pid"], queue[0].process.pid)
    same([waiter["pid"] for waiter in show("door")["waiters"]], [waiter.process.pid for waiter in queue[1:]])


def test_a_holder_that_died_is_an_incident():
    holder = Holder("door")
    waiter = Waiter("door")
    before_ms = time.time() * 1000
    holder.process.kill()
    waiter.await_turn()
    incident = show("door")["incidents"][-1]
    same((incident["kind"], incident["token"]), ("died", holder.token))
    assert before_ms - 1000 < incident["time_ms"] < time.time() * 1000 + 1000, incident
    text = tap.sneck("show", "door").stdout
    assert "incidents\n" in text and f"died  token {holder.token}" in text, text
    assert waiter.token > holder.token


def test_a_killed_holder_is_replaced_long_before_its_lease_ends():
    holder = Holder("door", "--lease", "60s")
    waiter = Waiter("door", "--lease", "60s")
    holder.process.kill()
    begun = time.monotonic()
    waiter.await_turn()
    assert time.monotonic() - begun < 10 * tap.PATIENCE


def test_a_lease_that_ended_is_an_incident():
    holder = Holder("door", "--lease", "500ms")
    os.kill(holder.process.pid, signal.SIGSTOP)
    waiter = Waiter("door")
    waiter.await_turn()
    incident = show("door")["incidents"][-1]
    same((incident["kind"], incident["token"]), ("expired", holder.token))


def test_a_break_is_an_incident_with_its_reason():
    holder = Holder("door")
    check(tap.sneck("break", "door", "--token", str(holder.token), "--reason", 'it "hangs"'), 0)
    incident = show("door")["incidents"][-1]
    same((incident["kind"], incident["token"]), ("broken", holder.token))
    assert incident["text"].startswith('it "hangs"') and "pid" in incident["text"], incident
    assert incident["time"].endswith("Z") and incident["time"][:2] == "20", incident


def test_exit_codes():
    check(tap.sneck("show"), 64)
    check(tap.sneck("show", "a", "b"), 64)
    check(tap.sneck("show", "a\tb"), 64)
    check(tap.sneck("show", "--store", "warp:", "door"), 78)
    check(tap.sneck("show", "--store", "sqlite:///nonexistent/folder/file.db", "door"), 69)
    same(json.loads(check(tap.sneck("show", "--json", "door"), 0).stdout)["name"], "door")


def test_the_nodes_of_a_quorum_are_shown():
    server = RedisServer()
    node = f"127.0.0.1:{server.port}"
    url = f"redlock://{node}?lease_max=1s&lease=1s"
    text = check(tap.sneck("show", "--store", url, "door"), 0).stdout
    assert "\nnodes\n" in text and node in text and "young, counts in " in text and "latency " in text, text
    tap.wait_until(lambda: "counts\n" in tap.sneck("show", "--store", url, "door").stdout)
    nodes = json.loads(check(tap.sneck("show", "--json", "--store", url, "door"), 0).stdout)["nodes"]
    same([(one["name"], one["state"], one["holds"], one["counts_in_ms"]) for one in nodes], [(node, "counts", False, 0)])
    assert nodes[0]["latency_us"] > 0 and nodes[0]["clock_offset_us"] == 0, nodes


tap.main()
