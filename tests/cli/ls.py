"""sneck ls: who has what."""

import json
import os
import sqlite3
import subprocess

import tap
from holder import Holder, Waiter, check, same, store_path


def names(*arguments):
    return check(tap.sneck("ls", "-q", *arguments), 0).stdout.splitlines()


def test_nothing_is_held():
    same(check(tap.sneck("ls"), 0).stdout.split(), "NAME HOLDER AGE LEFT TOKEN WAITERS WHY".split())
    same(json.loads(check(tap.sneck("ls", "--json"), 0).stdout), {"locks": []})
    same(names(), [])


def test_a_row_says_who_and_why():
    holder = Holder("door", "--why", "painting it")
    head, row = check(tap.sneck("ls"), 0).stdout.splitlines()
    cells = row.split(None, 6)
    same(cells[0], "door")
    same(cells[1], f"{os.uname().nodename}:{holder.process.pid}")
    same(cells[4:], [str(holder.token), "0", "painting it"])
    same(head.index("WHY"), row.index("painting"))


def test_a_released_lock_is_not_listed():
    holder = Holder("door")
    same(names(), ["door"])
    holder.let_go()
    same(names(), [])


def test_waiters_are_counted():
    holder = Holder("door")
    waiters = [Waiter("door"), Waiter("door")]
    lock = json.loads(tap.sneck("ls", "--json").stdout)["locks"][0]
    same((lock["waiter_count"], lock["holder"]["pid"]), (2, holder.process.pid))
    same(tap.sneck("ls").stdout.splitlines()[1].split()[5], "2")
    del waiters


def test_names_come_in_order():
    holders = [Holder(name) for name in ("b", "a/2", "c", "a/1")]
    same(names(), ["a/1", "a/2", "b", "c"])
    same([lock["name"] for lock in json.loads(tap.sneck("ls", "--json").stdout)["locks"]], ["a/1", "a/2", "b", "c"])
    del holders


def test_a_glob_chooses():
    holders = [Holder(name) for name in ("deploy/prod", "deploy/test", "deploy", "[x]", "é")]
    same(names("deploy*"), ["deploy", "deploy/prod", "deploy/test"])
    same(names("*prod"), ["deploy/prod"])
    same(names("deploy?test"), ["deploy/test"])
    same(names("deploy"), ["deploy"])
    same(names("nothing*"), [])
    same(names("?"), ["é"])
    del holders


def tamper(change, *values):
    """What somebody who can write to the store could do to it."""
    with sqlite3.connect(store_path()) as database:
        assert database.execute(change, values).rowcount > 0


def test_escape_sequences_in_the_store_are_shown_escaped():
    holder = Holder("door", "--why", "paint")
    tamper("UPDATE sneck_lock SET why = ?", "\x1b]0;owned\x07\r\nfree")
    for arguments in (["ls"], ["show", "door"], ["test", "door"]):
        output = tap.sneck(*arguments).stdout
        assert "\x1b" not in output and "\x07" not in output and "\r" not in output, repr(output)
        assert "\\x1B]0;owned\\x07" in output, output
    lock = json.loads(tap.sneck("ls", "--json").stdout)["locks"][0]
    same(lock["holder"]["why"], "\x1b]0;owned\x07\r\nfree")
    assert "\x1b" not in tap.sneck("ls", "--json").stdout
    holder.process.kill()


def test_an_escape_sequence_as_a_name_is_shown_escaped():
    holder = Holder("door")
    tamper("UPDATE sneck_lock SET resource_name = resource_name || ?", "\x1b[2J")
    for flags in ([], ["-q"]):
        output = check(tap.sneck("ls", *flags), 0).stdout
        assert "\x1b" not in output and "door\\x1B[2J" in output, repr(output)
    holder.process.kill()


def test_hostile_but_allowed_names():
    odd = ["'; DROP TABLE locks; --", "%s%n", "a b", "-x", "$(reboot)", "日本", "a\\b", "\u202eevil"]
    holders = [Holder(name, "--") for name in odd]
    same(sorted(names()), sorted(odd))
    same({lock["name"] for lock in json.loads(tap.sneck("ls", "--json").stdout)["locks"]}, set(odd))
    assert "\u202e" not in tap.sneck("ls").stdout
    del holders


def test_usage_errors_are_64():
    check(tap.sneck("ls", "a", "b"), 64)
    check(tap.sneck("ls", "--frobnicate"), 64)


def test_a_full_disk_below_stdout_is_70():
    with open("/dev/full", "w") as full:
        done = subprocess.run([os.environ["SNECK"], "ls"], stdout=full, stderr=subprocess.PIPE)
    same(done.returncode, 70)


def test_bad_store_78_and_69():
    check(tap.sneck("ls", "--store", "warp:"), 78)
    check(tap.sneck("ls", "--store", "sqlite:///nonexistent/folder/file.db"), 69)


tap.main()
