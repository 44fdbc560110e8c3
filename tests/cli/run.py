"""sneck run: exit codes, flags, environment, input and output, several locks, how long it is held."""

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import time

import tap
from holder import Holder, check, same, show, store_path
from running import Clock, Run, WAITS, children, is_free, is_guard, python, stop_and_continue


def run(*arguments, **options):
    return tap.sneck("run", *arguments, **options)


# ---- Exit codes ----


def test_the_exit_code_is_the_commands_own():
    for code in (0, 1, 7, 64, 75, 255):
        check(run("door", "--", "sh", "-c", f"exit {code}"), code)


def test_a_command_that_a_signal_ended_is_128_and_its_number():
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT):
        check(run("door", "--", "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$"), 128 + number)


def test_a_busy_lock_is_75_and_its_holder_is_named():
    holder = Holder("door", "--why", "painting")
    done = check(run("-n", "door", "--", "echo", "ran"), 75)
    same(done.stdout, "")
    assert f":{holder.process.pid} " in done.stderr and "painting" in done.stderr, done.stderr


def test_a_wait_that_is_over_is_75():
    holder = Holder("door")
    clock = Clock()
    check(run("-w", "0.3", "door", "--", "true"), 75)
    assert clock.read() >= 0.3
    check(run("--timeout", "250ms", "door", "--", "true"), 75)
    check(run("-w", "0", "door", "--", "true"), 75)


def test_another_code_for_busy():
    holder = Holder("door")
    for flags in (["-n", "-E", "3"], ["-nE3"], ["--nb", "--conflict-exit-code=3"], ["-w", ".1", "-E", "3"]):
        check(run(*flags, "door", "--", "true"), 3)


def test_busy_may_be_0_and_then_is_not_even_mentioned():
    holder = Holder("door")
    done = check(run("-n", "-E", "0", "door", "--", "echo", "ran"), 0)
    same((done.stdout, done.stderr), ("", ""))


def test_the_code_for_busy_is_for_nothing_else():
    check(run("-E", "3", "door", "--", "sh", "-c", "exit 75"), 75)
    check(run("-E", "0", "door", "--", "/does/not/exist"), 127)


def test_a_missing_command_is_127():
    for command in ("does-not-exist-anywhere", "/does/not/exist", "./missing"):
        done = check(run("door", "--", command), 127)
        assert command in done.stderr, done.stderr
    assert is_free("door")


def test_a_command_that_cannot_be_executed_is_126():
    with open("plain", "w") as file:
        file.write("text\n")
    os.mkdir("folder")
    for command in ("./plain", "./folder", "./plain/below"):
        done = check(run("door", "--", command), 126)
        assert command in done.stderr, done.stderr
    assert is_free("door")


def test_a_script_without_interpreter_line_runs():
    with open("script", "w") as file:
        file.write("exit 9\n")
    os.chmod("script", 0o755)
    check(run("door", "--", "./script"), 9)


def test_a_bad_url_or_configuration_is_78():
    for url in ("nonsense", "sqlite:relative", "sqlite:///x?leese=3s", "no-such-store://host", "", "sqlite:///" + "x" * 5000):
        done = check(run("--store", url, "door", "--", "echo", "ran"), 78)
        same(done.stdout, "")
        assert done.stderr.startswith("sneck: "), done.stderr
    check(run("door", "--", "true", env={**os.environ, "SNECK_LEASE": "soon"}), 78)


def test_an_unreachable_store_is_69():
    done = check(run("--store", f"sqlite://{os.getcwd()}/missing/store.db", "door", "--", "echo", "ran"), 69)
    same(done.stdout, "")


def test_a_store_that_takes_no_more_clients_is_69():
    check(run("door", "--", "true"), 0)
    with open(f"{store_path()}-sneck", "r+b") as sidecar:
        fcntl.lockf(sidecar, fcntl.LOCK_EX, 1024, 4096)  # the places of all clients that can have it open
        for arguments in (["run", "door", "--", "echo", "ran"], ["hold", "door"]):
            done = check(tap.sneck(*arguments, stdin=subprocess.DEVNULL), 69)
            same(done.stdout, "")
            assert "limit" in done.stderr, done.stderr
    check(run("door", "--", "true"), 0)


def test_a_store_that_refuses_us_is_77():
    os.mkdir("open")
    os.chmod("open", 0o777)
    done = check(run("--store", f"sqlite://{os.getcwd()}/open/store.db", "door", "--", "echo", "ran"), 77)
    same(done.stdout, "")


def test_with_few_descriptors_it_runs_or_says_why_not():
    codes = {}
    for limit in range(9, 40):
        done = run("door", "--", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
                   timeout=10 * tap.PATIENCE)
        codes[limit] = done.returncode
        assert done.returncode in (0, 69, 70) and (done.returncode == 0) == (done.stderr == ""), (limit, done)
    assert 70 in codes.values() and 0 in codes.values(), codes
    assert is_free("door")


def test_interrupted_while_waiting():
    holder = Holder("door")
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        waiting = Run("-v", "door", "--", "echo", "ran", ready=None)
        assert "waiting for door" in waiting.process.stderr.readline()
        waiting.send(number)
        waiting.ends_with(code)
        same(waiting.process.stdout.read(), "")
    tap.wait_until(lambda: show("door")["waiter_count"] == 0)


# ---- Wrong usage ----


def refused(*arguments, says=""):
    done = check(tap.sneck(*arguments), 64)
    same(done.stdout, "")
    assert done.stderr.startswith("sneck: ") and done.stderr.count("\n") == 1, done.stderr
    assert says in done.stderr, f"{says!r} is not in {done.stderr!r}"


def test_wrong_flags_are_64_with_a_hint():
    refused("run", "--lese", "3s", "door", "--", "true", says="--lease")
    refused("run", "--nonblok", "door", "--", "true", says="--nonblock")
    refused("run", "-z", "door", "--", "true", says="-z")
    refused("run", "--lease", says="value")
    refused("run", "--fair=yes", "door", "--", "true", says="no value")
    refused("rnu", says="run")
    refused(says="command")


def test_wrong_durations_are_64():
    for flag in ("-w", "--lease", "--renew", "--watchdog", "--min-hold", "--max-hold", "--kill-after"):
        for value in ("soon", "-1", "5x", "", "1 s", "1e400"):
            refused("run", flag, value, "door", "--", "true", says="duration")
    refused("run", "--lease", "99ms", "door", "--", "true", says="100")
    refused("run", "--watchdog", "99ms", "door", "--", "true", says="100")
    refused("run", "--renew", "16s", "door", "--", "true", says="half")
    refused("run", "--max-hold", "0", "door", "--", "true", says="duration")


def test_other_wrong_values_are_64():
    refused("run", "-E", "256", "door", "--", "true", says="255")
    refused("run", "-E", "-1", "door", "--", "true", says="255")
    refused("run", "--on-lost", "pray", "door", "--", "true", says="kill or warn")
    refused("run", "--recovery", "hope", "door", "--", "true", says="release, notify or reacquire")
    refused("run", "--recovery", "retry", "door", "--", "true", says="reacquire")
    refused("run", "--recovery", "reacquire", "--watchdog", "off", "door", "--", "true", says="needs the watchdog")
    refused("run", "--signal", "NOSUCH", "door", "--", "true", says="TERM")
    refused("run", "--min-hold", "3s", "--max-hold", "2s", "door", "--", "true", says="--max-hold")
    refused("run", "--why", "a\nb", "door", "--", "true", says="why")
    refused("run", "--why", "x" * 201, "door", "--", "true", says="200")


def test_wrong_names_are_64():
    for name in ("", "x" * 513, "a\nb", "a\x1b[2Jb", b"\xff\xfe"):
        refused("run", name, "--", "true")
        refused("run", "door", "--also", name, "--", "true")


def test_missing_operands_are_64():
    refused("run", says="NAME")
    refused("run", "door", says="command")
    refused("run", "door", "--", says="command")
    refused("run", "-c", "true", "door", "extra", says="extra")


def test_a_lease_without_room_to_stop_the_command_is_64():
    refused("run", "--lease", "6s", "door", "--", "true", says="--kill-after")
    refused("run", "--lease", "10s", "--kill-after", "8s", "door", "--", "true", says="--kill-after")
    refused("run", "--lease", "10s", "--renew", "5s", "door", "--", "true", says="--renew")
    refused("run", "--lease", "5s", "--renew", "never", "door", "--", "true", says="--kill-after")
    refused("run", "--store", os.environ["SNECK_STORE"] + "?lease=6s", "door", "--", "true", says="--kill-after")
    check(run("--lease", "6s", "--kill-after", "1s", "door", "--", "true"), 0)
    check(run("--lease", "6s", "--renew", "never", "door", "--", "true"), 0)
    check(run("--lease", "6s", "--on-lost", "warn", "door", "--", "true"), 0)


def test_wrong_usage_touches_no_store():
    refused("run", "--store", f"sqlite://{os.getcwd()}/new.db", "--why", "\n", "door", "--", "true")
    assert not os.path.exists("new.db")


# ---- flock's spellings, and where flags may stand ----


def test_the_spellings_of_flock():
    for flags in (["-x"], ["-e"], ["--exclusive"], ["-o"], ["--close"], ["-xo"], ["-n"], ["--nonblock"], ["--nonblocking"]):
        same(check(run(*flags, "door", "echo", "ran"), 0).stdout, "ran\n")
    same(check(run("-w", "5", "door", "echo", "ran"), 0).stdout, "ran\n")
    same(check(run("-w5", "door", "echo", "ran"), 0).stdout, "ran\n")
    same(check(run("door", "-c", "echo $((1+1))"), 0).stdout, "2\n")
    same(check(run("door", "--command", "exit 4"), 4).stdout, "")


def test_c_uses_the_shell_of_the_user():
    same(check(run("door", "-c", "echo $0", env={**os.environ, "SHELL": "/bin/bash"}), 0).stdout, "/bin/bash\n")
    environment = {name: value for name, value in os.environ.items() if name != "SHELL"}
    same(check(run("door", "-c", "echo $0", env=environment), 0).stdout, "/bin/sh\n")


def test_flags_of_the_command_are_its_own():
    same(check(run("door", "echo", "-n", "--json", "--", "x"), 0).stdout, "--json -- x")
    same(check(run("door", "--", "printf", "%s", "--help"), 0).stdout, "--help")
    same(check(run("--", "door", "--", "echo", "-v"), 0).stdout, "-v\n")


def test_flags_may_follow_the_name():
    same(check(run("door", "-n", "--why", "x", "--", "echo", "ran"), 0).stdout, "ran\n")


def test_there_is_no_shell_between():
    same(check(run("door", "--", "echo", "$HOME", "a  b", "*"), 0).stdout, "$HOME a  b *\n")


# ---- Environment, input and output ----


def test_the_command_finds_lock_token_store_and_deadline():
    before = time.time() * 1000
    code = "import os; print(*(os.environ[f'SNECK_{x}'] for x in ('LOCK', 'TOKEN', 'STORE', 'DEADLINE_MS')), sep='\\n')"
    done = check(run("--json", "the door", "--", *python(code)), 0)
    name, token, store, deadline = done.stdout.splitlines()
    same(name, "the door")
    acquired = [event for event in map(json.loads, done.stderr.splitlines()) if event["event"] == "acquired"]
    same([event["token"] for event in acquired], [int(token)])
    same(store, os.environ["SNECK_STORE"])
    assert before + 20000 < int(deadline) < time.time() * 1000 + 30000, deadline


def test_a_store_given_as_a_flag_is_passed_on():
    store = f"sqlite://{os.getcwd()}/other.db"
    same(check(run("--store", store, "door", "--", "printenv", "SNECK_STORE"), 0).stdout, store + "\n")


def test_the_inner_lock_wins():
    inner = [os.environ["SNECK"], "run", "inner", "--", "printenv", "SNECK_LOCK"]
    same(check(run("outer", "--", *inner), 0).stdout, "inner\n")


def test_stdin_and_stdout_are_the_commands():
    done = check(run("-v", "door", "--", "cat", input="one\ntwo\n"), 0)
    same(done.stdout, "one\ntwo\n")


def test_the_command_inherits_no_descriptor_of_ours():
    done = check(run("door", "--", "ls", "/proc/self/fd", stdin=subprocess.DEVNULL), 0)
    same(done.stdout.split(), ["0", "1", "2", "3"])  # 3 is what ls itself has open


def test_the_command_inherits_what_the_caller_passes():
    reader, writer = os.pipe()
    check(run("door", "--", "sh", "-c", f"echo hello >&{writer}", pass_fds=[writer]), 0)
    os.close(writer)
    same(os.read(reader, 100), b"hello\n")


def test_the_guard_keeps_nothing_of_the_caller_open():
    reader, writer = os.pipe()
    os.dup2(writer, 50)
    held = Run("door", command=WAITS, pass_fds=[50])
    guard_fds = {os.readlink(f"/proc/{held.guard}/fd/{fd}") for fd in os.listdir(f"/proc/{held.guard}/fd")}
    assert not any(name.startswith("pipe:") for name in guard_fds), guard_fds
    held.send(signal.SIGTERM)
    held.ends_with(143)


def test_the_password_of_a_store_is_taken_out_of_the_arguments():
    secret = "redis://user:geheim@127.0.0.1:1/0"
    check(run("--store", secret, "door", "--", "true"), 69)  # nobody listens there
    held = Run("--store", secret, "--store", os.environ["SNECK_STORE"], "door", command=WAITS)
    with open(f"/proc/{held.pid}/cmdline") as file:
        arguments = file.read()
    assert "user:******@" in arguments and "geheim" not in arguments, arguments


def test_signals_of_the_caller_are_as_they_were():
    command = ["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"]
    plain = subprocess.run(command, capture_output=True, text=True)
    same(check(run("door", "--", *command), 0).stdout, plain.stdout)


def test_json_tells_each_step():
    done = check(run("--json", "door", "--", "sh", "-c", "exit 3"), 3)
    events = [event for event in map(json.loads, done.stderr.splitlines()) if event["event"] != "waiting"]
    same([event["event"] for event in events], ["acquired", "released", "exit"])
    same(events[2]["code"], 3)


def test_json_tells_of_waiting():
    holder = Holder("door", "--why", "painting")
    waiting = Run("--json", "door", "--", "true", ready=None)
    event = json.loads(waiting.process.stderr.readline())
    same((event["event"], event["lock"], event["place"], event["waiters"]), ("waiting", "door", 1, 1))
    same((event["holder"]["pid"], event["holder"]["why"]), (holder.process.pid, "painting"))
    same(event["holder"]["token"], holder.token)
    holder.let_go()
    waiting.ends_with(0)
    assert '"acquired"' in waiting.errors()


def test_json_errors_are_json():
    holder = Holder("door")
    error = json.loads(check(run("--json", "-n", "door", "--", "true"), 75).stderr.splitlines()[0])
    same((error["event"], error["status"]), ("error", "SNECK_BUSY"))
    error = json.loads(check(run("--json", "--lease", "x", "door", "--", "true"), 64).stderr)
    same(error["event"], "error")


def test_quiet_says_nothing():
    holder = Holder("door")
    same(check(run("-q", "-n", "door", "--", "true"), 75).stderr, "")
    same(check(run("-q", "-w", ".2", "door", "--", "true"), 75).stderr, "")
    holder.let_go()
    same(check(run("-q", "door", "--", "true"), 0).stderr, "")


def test_an_ordinary_run_says_nothing():
    done = check(run("door", "--", "true"), 0)
    same((done.stdout, done.stderr), ("", ""))


def test_why_is_shown_to_others():
    held = Run("--why", "painting", "door", command=WAITS)
    same(show("door")["holder"]["why"], "painting")
    same(show("door")["holder"]["pid"], held.pid)


def test_help_tells_the_flags_and_exit_codes():
    done = check(tap.sneck("run", "--help"), 0)
    for text in ("--kill-after", "--on-lost", "SNECK_TOKEN", "79"):
        assert text in done.stdout, text


# ---- Inside of each other, and several at once ----


def test_the_same_lock_inside_is_refused():
    inner = [os.environ["SNECK"], "run", "door", "--", "echo", "ran"]
    for outer in (["door"], ["window", "--also", "door"]):
        done = check(run(*outer, "--", *inner), 64)
        same(done.stdout, "")
        assert "door" in done.stderr, done.stderr
    again = [os.environ["SNECK"], "run", "between", "--", *inner]
    check(run("door", "--", *again), 64)


def test_the_same_file_by_another_name_is_the_same_store():
    os.symlink(".", "link")
    store = f"sqlite://{os.getcwd()}/link/store.db?lease=40s"
    inner = [os.environ["SNECK"], "run", "--store", store, "door", "--", "echo", "ran"]
    check(run("door", "--", *inner), 64)


def test_another_lock_or_store_inside_is_fine():
    check(run("door", "--", os.environ["SNECK"], "run", "window", "--", "true"), 0)
    other = f"sqlite://{os.getcwd()}/other.db"
    check(run("door", "--", os.environ["SNECK"], "run", "--store", other, "door", "--", "true"), 0)


def test_a_run_that_is_over_refuses_nobody():
    held = check(run("door", "--", "printenv", "SNECK_HELD"), 0).stdout.rstrip("\n")
    check(run("door", "--", "true", env={**os.environ, "SNECK_HELD": held}), 0)


def test_several_locks_are_all_held():
    held = Run("b", "--also", "c", "--also", "a", command=python("say('ready'); say(os.environ['SNECK_TOKEN']); wait()"))
    token = int(held.line())
    for name in "abc":
        same(show(name)["holder"]["pid"], held.pid)
    same(show("b")["token"], token)
    held.send(signal.SIGTERM)
    held.ends_with(143)
    for name in "abc":
        assert is_free(name), name


def test_several_locks_are_all_or_none():
    holder = Holder("b")
    done = check(run("-n", "a", "--also", "b", "--also", "c", "--", "echo", "ran"), 75)
    same(done.stdout, "")
    assert "b is busy" in done.stderr, done.stderr
    check(run("-w", "0.2", "a", "--also", "b", "--also", "c", "--", "true"), 75)
    assert is_free("a") and is_free("c")


def test_a_lock_named_twice_is_64():
    refused("run", "a", "--also", "b", "--also", "a", "--", "true", says="twice")


def test_too_many_locks_are_64():
    also = [word for number in range(16) for word in ("--also", f"n{number}")]
    refused("run", *also, "door", "--", "true", says="16")


def test_several_locks_in_any_order_do_not_deadlock():
    orders = ["abc", "bca", "cab", "cba"]
    counter = f"{os.getcwd()}/counter"
    with open(counter, "w") as file:
        file.write("0")
    add = f"n=$(cat {counter}); echo $((n + 1)) > {counter}"
    script = 'for i in $(seq 5); do "$SNECK" run -q "$1" --also "$2" --also "$3" -c "$4" || exit 1; done'
    loops = [subprocess.Popen(["sh", "-c", script, "sh", *order, add]) for order in orders]
    same([loop.wait(25 * tap.PATIENCE) for loop in loops], [0] * len(orders))
    same(open(counter).read(), f"{5 * len(orders)}\n")


# ---- How long it is held ----


def test_min_hold_keeps_the_lock_when_the_command_has_ended():
    held = Run("--min-hold", "1h", "door", command=python("say('ready'); sys.exit(6)"))
    tap.wait_until(lambda: all(is_guard(pid) for pid in children(held.pid)))  # the command was waited for
    assert not is_free("door")
    held.send(signal.SIGTERM)
    held.ends_with(6)
    assert is_free("door")


def test_min_hold_goes_on_after_stops_in_quick_succession():
    held = Run("--min-hold", "1h", "door", command=python("say('ready'); sys.exit(6)"), process_group=0)
    tap.wait_until(lambda: all(is_guard(pid) for pid in children(held.pid)))
    stop_and_continue(held.process)
    held.send(signal.SIGTERM)
    held.ends_with(6)


def test_min_hold_ends():
    clock = Clock()
    check(run("--min-hold", "400ms", "door", "--", "true"), 0)
    assert clock.read() >= 0.4
    assert is_free("door")


def test_a_command_that_takes_longer_than_min_hold_waits_for_nothing():
    clock = Clock()
    check(run("--min-hold", "10ms", "door", "--", "sleep", "0.1"), 0)
    assert clock.read() < 5


def test_max_hold_stops_the_command_with_79():
    clock = Clock()
    held = Run("--max-hold", "2s", "door", command=python("tell_signals(signal.SIGTERM); say('ready'); wait()"))
    held.expect("got SIGTERM")
    assert clock.read() >= 2
    os.kill(held.command, signal.SIGKILL)
    held.ends_with(79)
    assert "--max-hold" in held.errors()
    assert is_free("door")


def test_max_hold_kills_what_does_not_stop():
    held = Run("--max-hold", "1s", "--kill-after", "200ms", "door", ready=None,
               command=python("ignore(signal.SIGTERM); say('ready'); wait()"))
    held.ends_with(79)


def test_max_hold_with_warn_gives_the_lock_back_and_lets_the_command_run():
    held = Run("--max-hold", "200ms", "--on-lost", "warn", "door", command=python("say('ready'); input(); sys.exit(4)"))
    tap.wait_until(lambda: is_free("door"))
    held.answer()
    held.ends_with(4)
    assert "--max-hold" in held.errors()


def test_the_lock_is_renewed_while_the_command_runs():
    held = Run("--lease", "2s", "--kill-after", "50ms", "door", command=WAITS)
    token = show("door")["token"]
    clock = Clock()
    while clock.read() < 4:
        same(show("door")["token"], token)
        time.sleep(0.1)
    held.send(signal.SIGTERM)
    held.ends_with(143)


tap.main()
