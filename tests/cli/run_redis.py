"""sneck run on a Redis server: what it does otherwise than on the embedded store, which knows at once who is dead."""

import os

import tap
from holder import check, same, show
from redis_server import PASSWORD, RedisServer
from running import Clock, Run, SHORT, TELLS, WAITS, guard_replaces_sneck, is_alive, is_free, kill_with_guard, python
from running import silence_stops_command


def use_server(**options):
    server = RedisServer(**options)
    os.environ["SNECK_STORE"] = server.url()
    return server


def run(*arguments, **options):
    return tap.sneck("run", *arguments, **options)


def test_the_exit_code_is_the_commands_own():
    use_server()
    for code in (0, 7, 255):
        check(run("door", "--", "sh", "-c", f"exit {code}"), code)
    assert is_free("door")


def test_a_killed_sneck_is_replaced_by_its_guard_long_before_the_lease_ends():
    use_server()
    guard_replaces_sneck()


def test_when_sneck_and_guard_are_killed_the_command_runs_on_and_the_lock_is_free_when_the_lease_ends():
    use_server()
    held = Run("--lease", "4s", "--kill-after", "300ms", "door", command=WAITS)
    command, token = held.command, show("door")["token"]
    clock = Clock()
    kill_with_guard(held)
    check(run("-n", "door", "--", "true"), 75)  # nobody can tell a dead holder from a slow one
    check(run("-w", "20", "door", "--", "sh", "-c", f"[ $SNECK_TOKEN -gt {token} ]"), 0)
    assert 2 < clock.read(), clock.read()  # renewed at most a third of the lease ago
    assert is_alive(command)


def test_a_server_that_forgets_is_loss():
    server = use_server()
    held = Run(*SHORT, "door", command=TELLS)
    server.ask("FLUSHALL")
    held.expect("got SIGTERM")
    held.ends_with(79)
    assert "lost the lock door" in held.errors()


def test_a_server_that_does_not_answer_stops_the_command_before_the_lease_ends():
    server = use_server()
    silence_stops_command(server)


def test_the_password_is_for_sneck_and_its_guard_alone():
    server = use_server(password=PASSWORD)
    store = server.url(credentials=f":{PASSWORD}@")
    held = Run("--store", store, "--kill-after", "100ms", "door", command=python("say('ready'); say(*sorted(os.environ.values())); wait()"))
    assert PASSWORD not in held.line()
    held.process.kill()
    tap.wait_until(lambda: tap.sneck("test", "-q", "--store", store, "door").returncode == 0)  # the guard has it


def test_a_sneck_inside_that_lacks_the_password_is_77():
    for credentials in (f":{PASSWORD}@", f"default:{PASSWORD}@"):
        server = use_server(password=PASSWORD)
        inner = [os.environ["SNECK"], "run", "window", "--", "echo", "ran"]
        done = check(run("--store", server.url(credentials), "door", "--", *inner), 77)
        same(done.stdout, "")
        server.process.kill()


def test_the_same_lock_inside_is_refused_however_the_server_is_written():
    server = use_server()
    inner = [os.environ["SNECK"], "run", "-n", "--store"]
    for rest in ("", "/", "/0", "/0?prefix=lock:&lease=40s"):
        check(run("door", "--", *inner, server.url(rest=rest), "door", "--", "true"), 64)
    for rest in ("/1", "?prefix=other:"):
        check(run("door", "--", *inner, server.url(rest=rest), "door", "--", "true"), 0)


tap.main()
