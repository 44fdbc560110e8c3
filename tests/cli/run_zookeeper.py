"""sneck run on a ZooKeeper server."""

import os

import tap
from holder import check, same, show
from running import Run, WAITS, guard_replaces_sneck, is_free, silence_stops_command
from zookeeper_server import ZookeeperServer


def use_server():
    server = ZookeeperServer()
    os.environ["SNECK_STORE"] = server.url()
    return server


def run(*arguments, **options):
    return tap.sneck("run", *arguments, **options)


def test_the_exit_code_is_the_commands_own_and_tokens_rise():
    use_server()
    tokens = []
    for code in (0, 7, 255):
        done = check(run("door", "--", "sh", "-c", f"echo $SNECK_TOKEN; exit {code}"), code)
        tokens.append(int(done.stdout))
    same(tokens, sorted(set(tokens)))
    assert is_free("door")


def test_whoever_comes_second_is_75_and_is_shown_who_holds():
    use_server()
    held = Run("door", command=WAITS)
    check(run("-n", "door", "--", "true"), 75)
    assert show("door")["token"] > 0
    held.process.terminate()
    held.ends_with(143)
    assert is_free("door")


def test_a_killed_sneck_is_replaced_by_its_guard_long_before_the_lease_ends():
    use_server()
    guard_replaces_sneck()


def test_a_server_that_does_not_answer_stops_the_command_before_the_lease_ends():
    server = use_server()
    silence_stops_command(server)


tap.main()
