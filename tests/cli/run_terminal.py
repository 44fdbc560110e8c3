"""sneck run on a terminal, under a shell with job control."""

import os
import shlex
import shutil
import signal

import tap
from holder import Holder, same, show
from running import children, is_free, is_guard, python, read, state, wait_until_gone, wait_until_stopped
from terminal import BASH, CTRL_C, CTRL_Z, Terminal

SNECK = shlex.quote(os.environ["SNECK"])


def script(name, code):
    """Writes a program for the shell to start, and returns how to call it."""
    interpreter, _, text = python(code)
    with open(name, "w") as file:
        file.write(text)
    return f"{interpreter} {name}"


def test_the_command_has_the_foreground():
    command = script("command", "say('foreground', os.tcgetpgrp(0) == os.getpgrp())")
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- {command}")
    terminal.expect("foreground True")
    terminal.expect_code(0)


def test_the_command_can_read_the_terminal():
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- sh -c 'echo rea''dy; read x; echo \"<$x>\"; exit 3'")
    terminal.expect("ready")
    terminal.run("hello")
    terminal.expect("<hello>")
    terminal.expect_code(3)


def test_ctrl_c_reaches_the_command_and_not_sneck():
    command = script("command", "tell_signals(signal.SIGINT); say('ready'); wait()")
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- {command}")
    terminal.expect("ready")
    terminal.type(CTRL_C)
    terminal.expect("got SIGINT")
    terminal.type(CTRL_C)
    terminal.expect("got SIGINT")
    terminal.type("\x1c")  # quit
    terminal.expect_code(128 + signal.SIGQUIT)
    assert is_free("door")


def test_ctrl_c_ends_the_command():
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- sh -c 'echo rea''dy; exec sleep 1000'")
    terminal.expect("ready")
    terminal.type(CTRL_C)
    terminal.expect_code(130)
    assert is_free("door")


def test_the_terminal_is_given_back():
    """To a script, which is in one group with sneck and reads after it."""
    terminal = Terminal()
    terminal.run(f"""sh -c '{SNECK} run door -- true; echo rea""dy; read x; echo "<$x>"'""")
    terminal.expect("ready")
    terminal.run("hello")
    terminal.expect("<hello>")


def test_the_terminal_is_given_back_by_a_killed_sneck_too():
    """The shell takes it back: nothing of the command may be left that reads from it."""
    terminal = Terminal()
    terminal.run(f"{SNECK} run --kill-after 100ms door -- sh -c 'echo rea''dy $PPID; exec cat'")
    pid = int(terminal.expect(r"ready (\d+)")[1])
    os.kill(pid, signal.SIGKILL)
    terminal.expect("Killed")
    tap.wait_until(lambda: is_free("door"))
    terminal.run("echo st''ill here")
    terminal.expect("still here")


def continued(times):
    """Code that counts how often it is continued, then reads a line and exits with 3."""
    return f"""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])
        say("ready", os.getppid(), os.getpid())
        for time in range({times}):
            signal.sigwait([signal.SIGCONT])
            say("continued", time + 1)
        say("<" + input() + ">")
        sys.exit(3)
    """


def test_ctrl_z_stops_it_and_fg_continues_it():
    command = script("command", continued(1))
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- {command}")
    sneck, pid = map(int, terminal.expect(r"ready (\d+) (\d+)").groups())
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    same((state(sneck), state(pid)), ("T", "T"))
    terminal.run("echo the shell is ba''ck")
    terminal.expect("is back")
    terminal.run("fg")
    terminal.expect("continued")
    terminal.run("hello")
    terminal.expect("<hello>")
    terminal.expect_code(3)


def stop_and_continue(shell, times):
    """Each fg must continue the command once: of two CONTs the second would undo the next stop."""
    command = script("command", continued(times))
    terminal = Terminal(*shell)
    terminal.run(f"{SNECK} run door -- {command}")
    terminal.expect("ready")
    for time in range(times):
        terminal.type(CTRL_Z)
        terminal.expect("Stopped")
        terminal.run("fg")
        terminal.expect(rf"continued {time + 1}\b")
    terminal.run("hello")
    terminal.expect("<hello>")
    terminal.expect_code(3)


def test_it_can_be_stopped_and_continued_again_and_again():
    stop_and_continue(BASH, 20)


def test_it_can_be_stopped_and_continued_under_another_shell():
    if shutil.which("dash") is None:
        raise tap.Skip("there is no dash")
    stop_and_continue(["dash", "-i"], 20)


def wait_until_stopped_in_shell(terminal):
    """A shell that has not heard of a stop yet would not continue it."""
    terminal.run("until jobs | grep -q Sto''pped; do sleep .05; done; echo now sto''pped")
    terminal.expect("now stopped")


def test_a_stop_that_follows_a_continue_at_once_is_not_lost():
    """The signals of a Ctrl-Z that is typed before sneck has come to what fg asks for."""
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- sh -c 'echo rea''dy $PPID $$; read x; echo \"<$x>\"; exit 3'")
    sneck, pid = map(int, terminal.expect(r"ready (\d+) (\d+)").groups())
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    for _ in range(tap.scaled(1000)):
        os.kill(sneck, signal.SIGCONT)
        os.kill(sneck, signal.SIGTSTP)
        tap.wait_until(lambda: (state(sneck), state(pid)) == ("T", "T"))
    wait_until_stopped_in_shell(terminal)
    terminal.run("fg")
    terminal.run("hello")
    terminal.expect("<hello>")
    terminal.expect_code(3)


def test_bg_continues_it_in_the_background():
    command = script("command", """
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])
        say("ready")
        signal.sigwait([signal.SIGCONT])
        say("foreground", os.tcgetpgrp(0) == os.getpgrp())
    """)
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- {command}")
    terminal.expect("ready")
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    terminal.run("bg")
    terminal.expect("foreground False")
    terminal.run("wait %1; echo st''ill here")
    terminal.expect("still here")


def test_a_command_in_the_background_that_reads_is_stopped_until_fg():
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- sh -c 'read x; echo \"<$x>\"; exit 3' &")
    terminal.expect(r"Stopped|\[1\]")
    tap.wait_until(lambda: not is_free("door"))
    wait_until_stopped_in_shell(terminal)
    terminal.run("fg")
    terminal.run("hello")
    terminal.expect("<hello>")
    terminal.expect_code(3)


def test_stopped_past_the_lease_it_is_killed_and_never_continued():
    command = script("command", "tell_signals(signal.SIGCONT); ignore(signal.SIGTERM); say('ready', os.getpid()); wait()")
    terminal = Terminal()
    terminal.run(f"{SNECK} run --lease 2s --kill-after 300ms door -- {command}")
    pid = int(terminal.expect(r"ready (\d+)")[1])
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    wait_until_gone(pid)
    tap.wait_until(lambda: is_free("door"))
    terminal.run("fg")
    terminal.expect("lost the lock door")
    terminal.expect_code(79)


def test_without_a_guard_sneck_itself_looks_at_the_clock_first():
    command = script("command", continued(1))
    terminal = Terminal()
    terminal.run(f"{SNECK} run --lease 2s --kill-after 300ms door -- {command}")
    sneck = int(terminal.expect(r"ready (\d+) \d+")[1])
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    [guard] = filter(is_guard, children(sneck))
    os.kill(guard, signal.SIGKILL)
    tap.wait_until(lambda: is_free("door"))  # the lease has ended, and nobody has stopped the command
    terminal.run("fg")
    terminal.expect("lost the lock door")
    assert "continued" not in terminal.seen, terminal.seen
    terminal.expect_code(79)
    assert "continued" not in terminal.seen, terminal.seen


def test_without_a_shell_a_stopped_command_goes_on():
    """sneck is alone on its terminal, as under `xterm -e`: nobody could ever continue it."""
    command = script("command", continued(1))
    terminal = Terminal(os.environ["SNECK"], "run", "door", "--", *shlex.split(command))
    terminal.expect("ready")
    terminal.type(CTRL_Z)
    terminal.expect("continued")
    terminal.run("hello")
    terminal.expect("<hello>")


def test_without_a_shell_a_command_stopped_by_force_stays_so_and_keeps_the_foreground():
    command = script("command", "say('ready', os.getpid()); input(); say('foreground', os.tcgetpgrp(0) == os.getpgrp())")
    terminal = Terminal(os.environ["SNECK"], "run", "door", "--", *shlex.split(command))
    pid = int(terminal.expect(r"ready (\d+)")[1])
    os.kill(pid, signal.SIGSTOP)
    wait_until_stopped(pid)
    terminal.run("hello")
    terminal.expect("hello")
    assert state(pid) == "T"
    os.kill(pid, signal.SIGCONT)
    terminal.expect("foreground True")


def test_a_command_that_can_never_have_the_terminal_is_hung_up():
    """Its shell is gone, and another one has the foreground: stopped, it would hold the lock for ever."""
    terminal = Terminal()
    reads = "until [ -e go ]; do sleep .01; done; read x </dev/tty"
    terminal.run(f"(({SNECK} run door -- sh -c '{reads}'; echo en''ded $?) &)")
    tap.wait_until(lambda: not is_free("door"))
    terminal.run("touch go")
    terminal.expect(f"ended {128 + signal.SIGHUP}")


def test_in_the_background_of_a_script_it_leaves_the_terminal_to_the_script():
    terminal = Terminal()
    terminal.run(f"""sh -c '{SNECK} run door -- sh -c "echo rea""dy; exec sleep 1000" & read x; echo "<$x>"; kill $!'""")
    terminal.expect("ready")
    terminal.run("hello")
    terminal.expect("<hello>")
    tap.wait_until(lambda: is_free("door"))


def test_the_rest_of_a_pipeline_can_use_the_terminal():
    """As `sneck run … | less` does."""
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- sh -c 'echo x; sleep 1' | sh -c 'read x; echo rea''dy; read y </dev/tty; echo \"<$y>\"'")
    terminal.expect("ready")
    terminal.run("hello")
    terminal.expect("<hello>")


def test_in_a_pipeline_the_command_gets_the_terminal_when_it_asks():
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- sh -c 'read y </dev/tty; echo \"<$y>\"' | cat")
    tap.wait_until(lambda: not is_free("door"))
    terminal.run("hello")
    terminal.expect("<hello>")


def test_ctrl_c_in_a_pipeline():
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- sh -c 'echo rea''dy; exec sleep 1000' | cat")
    terminal.expect("ready")
    terminal.type(CTRL_C)
    terminal.run("echo st''ill here")
    terminal.expect("still here")
    tap.wait_until(lambda: is_free("door"))


# ---- Waiting ----


def test_the_waiting_line_tells_who_has_it_and_for_how_long():
    holder = Holder("door", "--why", "painting")
    terminal = Terminal()
    terminal.run(f"{SNECK} run -w 1m door -- echo ra''n")
    for _ in range(2):  # it is renewed each second
        terminal.expect(
            rf"\rwaiting for door, held by [^ ]+:{holder.process.pid} \(\"painting\"\) for [\d.]+m?s; 1 of 1 in the queue; "
            r"waited [\d.]+m?s of 1m00s\x1b\[K"
        )
    holder.let_go()
    terminal.expect(r"\r\x1b\[K")
    terminal.expect("ran")
    terminal.expect_code(0)


def test_the_waiting_line_fits_the_terminal():
    holder = Holder("door", "--why", "x" * 150)
    terminal = Terminal(columns=40)
    terminal.run(f"{SNECK} run door -- true")
    match = terminal.expect(r"\r(waiting for [^\x1b]*)\x1b\[K")
    same(len(match[1]), 39)


def test_quiet_has_no_waiting_line():
    holder = Holder("door")
    terminal = Terminal()
    terminal.run(f"{SNECK} run -q -w 1.5 door -- true; echo en''ded $?")
    terminal.expect(r"ended 75")
    assert "waiting" not in terminal.seen


def test_ctrl_c_while_waiting_is_130():
    holder = Holder("door")
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- true")
    terminal.expect("waiting for door")
    terminal.type(CTRL_C)
    terminal.expect_code(130)


def interrupt_script(command, ready):
    """One Ctrl-C ends a script that would go on with its next command, as it does without sneck."""
    for shell in ("bash", "dash"):
        if shutil.which(shell) is None:
            continue
        with open("script", "w") as file:
            file.write(f"for i in 1 2 3; do {command}; echo went on; done\n")
        terminal = Terminal()
        terminal.run(f"{shell} script")
        terminal.expect(ready)
        terminal.type(CTRL_C)
        terminal.run("echo st''ill here $?")
        match = terminal.expect(r"((.|\n)*)still here (\d+)")
        same((match[3], "went on" in match[1]), ("130", False))


def test_ctrl_c_ends_the_script_too():
    interrupt_script(f"{SNECK} run door -- sh -c 'echo ready; exec sleep 1000'", "ready")


def test_ctrl_c_while_waiting_ends_the_script_too():
    holder = Holder("door")
    for subcommand in ("run", "hold"):
        interrupt_script(f"{SNECK} {subcommand} door {'true' if subcommand == 'run' else ''}", "waiting for door")


def test_ctrl_c_that_the_command_survives_does_not_end_the_script():
    command = script("command", "end_on(signal.SIGINT, 7); say('ready'); wait()")
    terminal = Terminal()
    terminal.run(f"sh -c '{SNECK} run door -- {command}; echo en''ded $?'")
    terminal.expect("ready")
    terminal.type(CTRL_C)
    terminal.expect("ended 7")


def test_an_interrupt_that_nobody_typed_is_an_exit_code():
    """A program that starts sneck and sends it an INT looks for 130, terminal or not."""
    code = f"""
        process = subprocess.Popen([{os.environ["SNECK"]!r}, "run", "door", "--", "sh", "-c", "echo ready; exec sleep 1000"],
                                   stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        say("code", process.wait())
    """
    Terminal(*shlex.split(script("program", code))).expect("code 130")


def test_hold_reads_the_terminal_again_when_it_is_back_in_the_foreground():
    terminal = Terminal()
    terminal.run(f"{SNECK} hold door")
    terminal.expect(r"\d+ door")
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    terminal.run("bg; until [ -e go ]; do sleep .01; done; kill -STOP %1")
    pid = show("door")["holder"]["pid"]
    tap.wait_until(lambda: state(pid) == "S")
    before = read(f"/proc/{pid}/task/{pid}/status")
    terminal.run("echo a l''ine")  # while the shell does not read, sneck tries to, and must not
    tap.wait_until(lambda: read(f"/proc/{pid}/task/{pid}/status") != before)
    open("go", "w").close()
    terminal.expect("a line")
    wait_until_stopped_in_shell(terminal)
    terminal.run("fg")
    terminal.expect("hold door")
    terminal.type("\x04")
    terminal.expect_code(0)
    assert is_free("door")


def test_ctrl_z_while_waiting():
    holder = Holder("door")
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- echo ra''n")
    terminal.expect("waiting for door")
    terminal.type(CTRL_Z)
    terminal.expect("Stopped")
    holder.let_go()
    terminal.run("fg")
    terminal.expect("ran")
    terminal.expect_code(0)


def test_a_holders_text_cannot_control_the_terminal():
    """The store's file may be written by others: its texts are not trusted."""
    import sqlite3

    holder = Holder("door", "--why", "harmless")
    with sqlite3.connect("store.db") as store:
        tables = [row[0] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            if "why" in [row[1] for row in store.execute(f"PRAGMA table_info({table})")]:
                store.execute(f"UPDATE {table} SET why = ?", ("\x1b]0;owned\x07",))
    store.close()
    terminal = Terminal()
    terminal.run(f"{SNECK} run door -- true")
    match = terminal.expect(r"waiting for door[^\r]*?\x1b\[K")
    assert "\\x1B]0;owned\\x07" in match[0], match[0]


tap.main()
