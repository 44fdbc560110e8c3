"""sneck completion: scripts that know every command, every flag and the names of locks."""

import os
import re
import shutil
import subprocess

import tap
from holder import Holder, check, same

SHELLS = ("bash", "zsh", "fish")


def script(shell):
    return check(tap.sneck("completion", shell), 0).stdout


def commands():
    """As `sneck --help` lists them."""
    listed = tap.sneck("--help").stdout.split("Flags of every command:")[0]
    return re.findall(r"^  (\w+)  ", listed, re.MULTILINE)


def long_flags(command):
    return set(re.findall(r"--([a-z][a-z-]+)", "\n".join(
        line[:30] for line in tap.sneck(command, "--help").stdout.splitlines() if line.startswith("  "))))


def complete_in_bash(*words):
    """What bash would offer with the cursor after the last word."""
    program = script("bash") + """
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
_sneck
printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-c", program, "bash", *words], capture_output=True, text=True)
    same(done.stderr, "")
    return done.stdout.split("\n")[:-1] if done.stdout != "\n" else []


def test_bash_completes_commands():
    same(set(complete_in_bash("sneck", "")), set(commands()))
    same(complete_in_bash("sneck", "sho"), ["show"])
    same(complete_in_bash("sneck", "--json", "sho"), ["show"])
    same(complete_in_bash("sneck", "--store", "memory:", "sho"), ["show"])


def test_bash_completes_flags():
    same(complete_in_bash("sneck", "break", "--to"), ["--token"])
    same(complete_in_bash("sneck", "test", "--wa"), ["--wait"])
    assert "--store" in complete_in_bash("sneck", "ls", "-")


def test_bash_completes_names_of_locks():
    sneck = os.environ["SNECK"]
    holders = [Holder(name) for name in ("deploy/prod", "deploy/test", "other")]
    same(complete_in_bash(sneck, "show", "dep"), ["deploy/prod", "deploy/test"])
    same(complete_in_bash(sneck, "break", "--token", "5", "o"), ["other"])
    same(complete_in_bash(sneck, "show", "deploy/prod", ""), [])
    same(complete_in_bash(sneck, "show", "--store", "memory:", "dep"), [])
    del holders


def test_bash_quotes_names():
    holder = Holder("a $(b)")
    same(complete_in_bash(os.environ["SNECK"], "show", ""), ["a\\ \\$\\(b\\)"])
    holder.let_go()


def test_bash_completes_shells():
    same(complete_in_bash("sneck", "completion", ""), list(SHELLS))


def test_bash_completes_values():
    same(complete_in_bash("sneck", "run", "--on-lost", ""), ["kill", "warn"])
    same(complete_in_bash("sneck", "run", "--renew", ""), ["never"])
    same(complete_in_bash("sneck", "run", "--lease", ""), [])


def test_bash_completes_the_command_to_run():
    assert "true" in complete_in_bash("sneck", "run", "door", "tru")


def test_every_script_has_every_command_and_flag():
    for shell in SHELLS:
        text = script(shell)
        for command in commands():
            assert command in text, (shell, command)
            for flag in long_flags(command):
                assert f"--{flag}" in text or f"-l {flag} " in text, (shell, command, flag)


def test_every_shell_can_read_its_script():
    for shell in SHELLS:
        if shutil.which(shell) is None:
            tap.comment(f"no {shell} here")
            continue
        done = subprocess.run([shell, "-n", "/dev/stdin"], input=script(shell), capture_output=True, text=True)
        same((shell, done.returncode, done.stderr), (shell, 0, ""))


def test_fish_completes():
    if shutil.which("fish") is None:
        raise tap.Skip("no fish here")
    os.mkdir("bin")
    os.symlink(os.environ["SNECK"], "bin/sneck")
    holder = Holder("deploy/prod")
    home = {"HOME": os.getcwd(), "PATH": f"{os.getcwd()}/bin:{os.environ['PATH']}"}
    for line, expected in (("sneck sho", "show"), ("sneck show dep", "deploy/prod"), ("sneck break --to", "--token")):
        program = script("fish") + f"\ncomplete -C '{line}'\n"
        done = subprocess.run(["fish", "-c", program], capture_output=True, text=True, env={**os.environ, **home})
        assert expected in [offer.split("\t")[0] for offer in done.stdout.splitlines()], (line, done)
    holder.let_go()


def test_exit_codes():
    check(tap.sneck("completion"), 64)
    check(tap.sneck("completion", "tcsh"), 64)
    check(tap.sneck("completion", "bash", "zsh"), 64)
    check(tap.sneck("completion", "--help"), 0)


tap.main()
