"""The default store: everybody who is the same user meets there, whatever the environment."""

import json
import os
import shutil
import subprocess
import sys

import tap
from holder import check, same

# The default store of who runs the tests stays as it is. As root, another user's is used instead, whom nobody is; else
# the tests run in a namespace with a /run/lock of their own.
UID = 54387
IN_NAMESPACE = "SNECK_TEST_NAMESPACE" in os.environ
CAN_BECOME_OTHERS = os.getuid() == 0 and not IN_NAMESPACE
ENTER = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
         'mount -t tmpfs -o mode=1777 none /run/lock && exec "$@"', "sh"]


def enter_namespace():
    """Runs this script again in one, if there can be one."""
    if os.getuid() != 0 and subprocess.run([*ENTER, "true"], capture_output=True).returncode == 0:
        os.environ["SNECK_TEST_NAMESPACE"] = "yes"
        os.execvp(ENTER[0], [*ENTER, sys.executable, *sys.argv])


def as_user(*command, **options):
    """A command as the throw-away user; in a namespace as ourselves."""
    prefix = []
    if CAN_BECOME_OTHERS:
        prefix = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", "--"]
    elif not IN_NAMESPACE:
        raise tap.Skip("needs root or a user namespace, to have a default store of its own")
    return subprocess.Popen([*prefix, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, **options)


def copy_of_sneck():
    """The build folder may be closed to others."""
    shutil.copy(os.environ["SNECK"], "sneck")
    os.chmod(".", 0o755)
    return os.path.abspath("sneck")


def hold_like_cron(sneck, name):
    """As cron starts a job: hardly any environment, another folder, no terminal, /bin/sh."""
    holder = as_user("env", "-i", "/bin/sh", "-c", f"exec {sneck} hold --json {name}", cwd="/", start_new_session=True)
    line = holder.stdout.readline()
    assert line, holder.stderr.read()
    return holder, json.loads(line)["token"]


def test_a_cron_job_and_a_login_shell_meet():
    sneck = copy_of_sneck()
    name = f"meeting-{os.getpid()}"
    holder, token = hold_like_cron(sneck, name)
    environment = {"HOME": os.getcwd(), "TMPDIR": os.getcwd(), "XDG_RUNTIME_DIR": os.getcwd(), "PATH": "/usr/bin:/bin",
                   "LANG": "C.UTF-8"}
    shell = as_user("/bin/sh", "-l", "-c", f"exec {sneck} test --json {name}", env=environment)
    output, errors = shell.communicate()
    assert shell.returncode == 75, (shell.returncode, output, errors)
    same(json.loads(output)["token"], token)
    holder.stdin.close()
    same(holder.wait(), 0)
    shell = as_user("/bin/sh", "-l", "-c", f"exec {sneck} test {name}", env=environment)
    same(shell.communicate(), ("free\n", ""))
    same(shell.returncode, 0)


def test_the_folder_is_private():
    if not CAN_BECOME_OTHERS:
        raise tap.Skip("needs root, to become somebody else")
    sneck = copy_of_sneck()
    holder, _ = hold_like_cron(sneck, "private")
    folder = next(path for path in (f"/run/lock/sneck-{UID}", f"/tmp/sneck-{UID}") if os.path.exists(path))
    status = os.stat(folder)
    same((status.st_uid, status.st_mode & 0o777), (UID, 0o700))
    for entry in os.listdir(folder):
        same(os.stat(f"{folder}/{entry}").st_mode & 0o077, 0)
    holder.stdin.close()
    holder.wait()


def test_two_users_do_not_meet():
    if not CAN_BECOME_OTHERS:
        raise tap.Skip("needs root, to become somebody else")
    sneck = copy_of_sneck()
    holder, _ = hold_like_cron(sneck, "apart")
    other = ["setpriv", "--reuid", str(UID + 1), "--regid", str(UID + 1), "--clear-groups", "--"]
    done = subprocess.run([*other, "env", "-i", sneck, "test", "apart"], capture_output=True, text=True)
    check(done, 0)
    holder.stdin.close()
    holder.wait()


def forget():
    if not CAN_BECOME_OTHERS:
        return
    for uid in (UID, UID + 1):
        for folder in ("/run/lock", "/tmp"):
            shutil.rmtree(f"{folder}/sneck-{uid}", ignore_errors=True)


enter_namespace()
try:
    tap.main()
finally:
    forget()
