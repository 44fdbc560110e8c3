"""sneck test: is it free, and if not, who has it."""

import json
import os
import shutil
import signal
import socket
import subprocess

import tap
from holder import Holder, check, same, store_path


def test_a_free_lock_is_0():
    done = check(tap.sneck("test", "door"), 0)
    same((done.stdout, done.stderr), ("free\n", ""))


def test_a_held_lock_is_75_and_its_holder_is_printed():
    holder = Holder("door", "--why", "painting it")
    done = check(tap.sneck("test", "door"), 75)
    assert f"{socket.gethostname()}:{holder.process.pid}" in done.stdout, done.stdout
    assert f"token {holder.token}: painting it\n" in done.stdout, done.stdout
    same(done.stderr, "")


def test_a_released_lock_is_free_again():
    same(Holder("door").let_go(), 0)
    check(tap.sneck("test", "door"), 0)


def test_quiet_prints_nothing():
    same(check(tap.sneck("test", "-q", "door"), 0).stdout, "")
    holder = Holder("door")
    same(check(tap.sneck("test", "-q", "door"), 75).stdout, "")
    holder.let_go()


def test_json_of_a_free_lock():
    lock = json.loads(check(tap.sneck("test", "--json", "door"), 0).stdout)
    same((lock["name"], lock["held"], lock["holder"], lock["token"]), ("door", False, None, 0))


def test_json_of_a_held_lock():
    holder = Holder("door", "--why", 'a "quoted" reason', "--lease", "60s")
    lock = json.loads(check(tap.sneck("test", "--json", "door"), 75).stdout)
    same((lock["name"], lock["held"], lock["token"]), ("door", True, holder.token))
    same((lock["holder"]["pid"], lock["holder"]["why"]), (holder.process.pid, 'a "quoted" reason'))
    same(lock["holder"]["host"], socket.gethostname())
    assert 0 <= lock["holder"]["age_ms"] < 30000, lock
    assert 30000 < lock["holder"]["remaining_ms"] <= 60000, lock


def test_wait_ends_when_the_lock_becomes_free():
    holder = Holder("door")
    waiting = tap.start_sneck("test", "-w", "20", "door")
    check(tap.sneck("test", "door"), 75)
    same(waiting.poll(), None)
    holder.let_go()
    same(waiting.communicate(), ("free\n", ""))
    same(waiting.returncode, 0)


def test_wait_that_is_over_is_75():
    holder = Holder("door")
    done = check(tap.sneck("test", "--wait", "100ms", "door"), 75)
    assert "held by" in done.stdout, done.stdout
    holder.let_go()


def test_wait_does_not_queue():
    holder = Holder("door")
    waiting = tap.start_sneck("test", "-w", "20", "door")
    for _ in range(5):
        lock = json.loads(tap.sneck("test", "--json", "door").stdout)
        same(lock["waiter_count"], 0)
    waiting.kill()
    holder.let_go()


def test_an_interrupted_wait_ends_by_the_signal():
    holder = Holder("door")
    for number in (signal.SIGINT, signal.SIGTERM):
        waiting = tap.start_sneck("test", "-w", "20", "door")
        tap.wait_until(lambda: "poll" in open(f"/proc/{waiting.pid}/wchan").read() or sleeps(waiting.pid))
        waiting.send_signal(number)
        assert waiting.wait() in (-number, 128 + number), waiting.returncode
    holder.let_go()


def sleeps(pid):
    return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "S"


def test_bad_names_are_64_before_any_io():
    for name in ("", "a\nb", "\x1b[31m", "x" * 513, b"\xff\xfe"):
        done = tap.sneck("test", "--", name)
        check(done, 64)
        assert done.stderr.startswith("sneck: "), done.stderr
        assert "\x1b" not in done.stderr, done.stderr
    assert not os.path.exists(store_path())


def test_usage_errors_are_64():
    for arguments in ([], ["a", "b"], ["-w", "soon", "a"], ["-w", "-1", "a"], ["--frobnicate", "a"]):
        done = check(tap.sneck("test", *arguments), 64)
        assert done.stderr.startswith("sneck: "), done.stderr


def test_a_name_that_looks_like_a_flag():
    check(tap.sneck("test", "--", "-w"), 0)


def test_help_is_0_and_goes_to_stdout():
    done = check(tap.sneck("test", "--help"), 0)
    assert "--wait" in done.stdout and done.stderr == "", done.stdout


def test_a_bad_url_is_78():
    for url in ("nonsense", "sqlite:relative/file", "sqlite:///tmp/x?frobnicate=1", "redis://localhost?frobnicate=1", "warp:"):
        check(tap.sneck("test", "--store", url, "door"), 78)


def test_a_store_that_cannot_be_reached_is_69():
    check(tap.sneck("test", "--store", "sqlite:///nonexistent/folder/file.db", "door"), 69)


def test_a_store_that_refuses_is_77():
    if os.getuid() != 0:
        raise tap.Skip("needs root, to become somebody else")
    Holder("door").let_go()
    os.chmod(".", 0o755)
    command = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]
    done = subprocess.run([*command, copy_of_sneck(), "test", "door"], capture_output=True, text=True)
    check(done, 77)


def copy_of_sneck():
    """The build folder may be closed to others."""
    shutil.copy(os.environ["SNECK"], "sneck")
    return os.path.abspath("sneck")


def test_an_error_with_json_is_json():
    done = check(tap.sneck("--json", "test", "--store", "warp:", "door"), 78)
    same(json.loads(done.stderr)["event"], "error")


tap.main()
