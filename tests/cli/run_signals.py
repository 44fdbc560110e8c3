"""sneck run: signals, and the processes of the command."""

import os
import signal

import tap
from holder import same
from running import Run, WAITS, children, is_alive, is_free, python, state, wait_until_stopped

TELLS = "tell_signals(*(getattr(signal, 'SIG' + name) for name in ('HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2', 'WINCH')))"


def test_signals_are_forwarded():
    held = Run("door", command=python(f"{TELLS}; say('ready'); wait()"))
    for name in ("HUP", "INT", "QUIT", "USR1", "USR2", "WINCH", "TERM"):
        held.send(getattr(signal, f"SIG{name}"))
        held.expect(f"got SIG{name}")
    os.kill(held.command, signal.SIGKILL)
    held.ends_with(137)


def test_a_command_that_dies_of_a_forwarded_signal():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        held = Run("door", command=python("signal.signal(signal.SIGINT, signal.SIG_DFL); say('ready'); wait()"))
        held.send(number)
        held.ends_with(128 + number)
        assert is_free("door")


def test_a_command_that_ends_by_itself_after_a_signal_keeps_its_code():
    held = Run("door", command=python("end_on(signal.SIGTERM, 3); say('ready'); wait()"))
    held.send(signal.SIGTERM)
    held.ends_with(3)


def test_signals_reach_the_whole_group():
    held = Run("door", command=python("""
        grandchild("tell_signals(signal.SIGUSR1); say('ready'); wait()")
        ignore(signal.SIGUSR1)
        wait()
    """))
    held.send(signal.SIGUSR1)
    held.expect("got SIGUSR1")
    held.send(signal.SIGTERM)
    held.ends_with(143)


def test_the_second_term_kills():
    held = Run("door", command=python("tell_signals(signal.SIGTERM); say('ready'); wait()"))
    held.send(signal.SIGTERM)
    held.expect("got SIGTERM")
    assert is_alive(held.pid)
    held.send(signal.SIGTERM)
    held.ends_with(137)


def test_stop_and_continue_are_forwarded():
    held = Run("door", command=python("tell_signals(signal.SIGCONT); say('ready'); wait()"), start_new_session=True)
    command = held.command
    held.send(signal.SIGTSTP)
    wait_until_stopped(command)
    assert state(held.pid) != "T", "without a terminal sneck goes on and renews"
    held.send(signal.SIGCONT)
    held.expect("got SIGCONT")
    held.send(signal.SIGTERM)
    held.ends_with(143)


def test_a_signal_that_the_caller_ignores_is_not_forwarded():
    held = Run("door", command=WAITS, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    held.send(signal.SIGHUP)
    held.send(signal.SIGTERM)  # comes second, and is the one that ends it
    held.ends_with(143)


def test_a_hangup_that_the_caller_ignores_does_not_end_the_wait():
    holder = Run("door", command=WAITS)
    waiting = Run("-v", "door", "--", "true", ready=None,
                  preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    waiting.process.stderr.readline()
    waiting.send(signal.SIGHUP)
    holder.send(signal.SIGTERM)
    holder.ends_with(143)
    waiting.ends_with(0)


def test_the_command_has_a_process_group_of_its_own():
    held = Run("door", command=python("say('ready'); say(os.getpgrp(), os.getpid()); wait()"))
    group, pid = map(int, held.line().split())
    same(group, pid)
    assert group != os.getpgid(held.pid)
    same(group, held.command)


def test_the_lock_is_held_until_the_whole_group_is_gone():
    held = Run("door", command=python("""
        child = grandchild("say('ready'); wait()")
        say(child.pid)
        sys.exit(5)
    """), ready=None)
    lines = {held.line(), held.line()}
    grandchild = int((lines - {"ready"}).pop())
    tap.wait_until(lambda: not os.path.exists(f"/proc/{os.getpgid(grandchild)}"))  # the command itself is gone
    assert is_alive(held.pid) and not is_free("door")
    os.kill(grandchild, signal.SIGKILL)
    held.ends_with(5)
    assert is_free("door")


def test_it_says_what_it_waits_for():
    held = Run("door", command=python("grandchild(\"say('ready'); wait()\"); sys.exit(5)"))
    assert "left running" in held.process.stderr.readline()
    held.send(signal.SIGINT)  # nobody else is there to hear it now
    held.ends_with(5)


def test_asked_twice_it_kills_what_the_command_left_behind():
    held = Run("door", command=python("""
        grandchild("tell_signals(signal.SIGINT); say('ready'); wait()")
        sys.exit(5)
    """))
    assert "left running" in held.process.stderr.readline()
    held.send(signal.SIGINT)
    held.expect("got SIGINT")
    held.send(signal.SIGINT)
    held.ends_with(5)


def test_orphans_are_reaped():
    """Orphans of the command become sneck's children, and must not stay as zombies."""
    held = Run("door", command=python("""
        if os.fork() == 0:
            if os.fork() == 0:
                say("ready")
            os._exit(0)
        os.wait()
        input()
    """))
    tap.wait_until(lambda: not any(state(pid) == "Z" for pid in children(held.pid)))
    held.answer()
    held.ends_with(0)


def test_a_daemon_that_left_the_group_does_not_hold_the_lock():
    held = Run("door", command=python("""
        if os.fork() == 0:
            os.setsid()
            say("ready")
            wait()
        sys.exit(0)
    """))
    held.ends_with(0)
    assert is_free("door")


def test_a_closed_stderr_harms_nothing():
    held = Run("-v", "door", command=python("say('ready'); input(); sys.exit(2)"))
    held.process.stderr.close()
    held.answer()
    same(held.wait(), 2)


def test_a_storm_of_signals():
    held = Run("door", command=python(f"{TELLS}; say('ready'); input(); sys.exit(4)"))
    for _ in range(tap.scaled(20000)):
        held.send(signal.SIGWINCH)
        held.send(signal.SIGCONT)
    held.answer()
    held.process.stdout.read()
    held.ends_with(4)


tap.main()
