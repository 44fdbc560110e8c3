"""sneck demo: what it says is what happened, and it ends in time."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

import tap
from holder import check, same

SECONDS = 20


def play(*flags, **environment):
    begun = time.monotonic()
    with in_memory() as folder:
        done = tap.sneck("demo", *flags, env={**os.environ, "TMPDIR": folder, **environment})
        taken = time.monotonic() - begun
        assert taken < SECONDS * tap.PATIENCE, f"{taken} s"
        same(os.listdir(folder), [])
    return check(done, 0)


def in_memory():
    """A folder for the demo, as fast as it would choose itself, in which its leavings would be seen."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def check_rounds(rounds):
    bare, locked, frozen, checked = rounds
    same((locked["oversold"], checked["oversold"]), (0, 0))
    assert bare["oversold"] > 0, rounds
    assert frozen["lost_leases"] >= 1, rounds
    assert frozen["oversold"] >= 1, rounds
    assert checked["refused_writes"] >= 1, rounds
    same((bare["lost_leases"], bare["refused_writes"], locked["lost_leases"]), (0, 0, 0))
    same((locked["refused_writes"], frozen["refused_writes"]), (0, 0))
    for entry in rounds:
        assert entry["sold"] - entry["oversold"] <= 100, rounds
        same(entry["failed_calls"], 0)


@tap.time_limit(60)
def test_the_table_the_json_and_the_picture_agree_with_what_happened():
    done = play("--json", "--svg", "demo.svg")
    rounds = json.loads(done.stdout)["rounds"]
    check_rounds(rounds)
    same(rounds[1]["sold"], 100)
    picture = xml.etree.ElementTree.parse("demo.svg")
    text = "".join(picture.getroot().itertext())
    for number, entry in enumerate(rounds, 1):
        words = f"Round {number}, {entry['title']}: {entry['sold']} sold, {entry['oversold']} oversold, "
        words += f"{entry['lost_leases']} leases lost, {entry['refused_writes']} writes refused."
        assert words in text, (words, text)
    # Each sale is a stroke in the picture: as many of them as the table says.
    strokes = {}
    for path in picture.getroot().iter("{http://www.w3.org/2000/svg}path"):
        if path.get("d").startswith("M0 0"):
            name = path.get("class")
            strokes[name] = strokes.get(name, 0) + path.get("d")[4:].count("M")
    same(strokes["sale"], sum(entry["sold"] - entry["oversold"] for entry in rounds))
    same(strokes["twice"], sum(entry["oversold"] for entry in rounds))
    same(strokes["late"], sum(entry["refused_writes"] for entry in rounds))


def start_in_a_pipe(*flags, **environment):
    return tap.start_sneck("demo", *flags, env={**os.environ, **environment}, stdin=subprocess.DEVNULL)


def finish(process, code):
    output, errors = process.communicate()
    assert process.returncode == code, (process.returncode, output, errors)
    return output, errors


class Terminal(threading.Thread):
    """A demo on a terminal, whose output is read as it comes."""

    def __init__(self, **environment):
        super().__init__()
        self.output = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(os.environ["SNECK"], ["sneck", "demo"], {**os.environ, **environment})
        self.start()

    def run(self):
        try:
            while piece := os.read(self.terminal, 65536):
                self.output += piece
        except OSError:
            pass  # the other end is closed

    def finish(self):
        self.join()
        same(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), 0)
        return self.output.decode()


@tap.time_limit(60)
def test_what_it_prints_suits_where_it_goes():
    """All at once, because each takes its time."""
    folder = in_memory()
    odd = f"{folder.name}/a ?#%20&b"
    os.mkdir(odd)
    live = Terminal(TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="")
    plain = Terminal(TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1")
    dumb = Terminal(TERM="dumb", LC_ALL="C")
    piped = start_in_a_pipe(LC_ALL="C")
    quiet = start_in_a_pipe("-q", TMPDIR=odd)
    unwritable = start_in_a_pipe("--svg", "/nonexistent/folder/demo.svg")
    check_live(live.finish())
    check_without_colours(plain.finish())
    check_plain(dumb.finish().replace("\r\n", "\n"))
    check_plain(finish(piped, 0)[0])
    same(len(finish(quiet, 0)[0].strip().splitlines()), 5)
    folder.cleanup()
    assert "/nonexistent/folder/demo.svg" in finish(unwritable, 70)[1]


def check_live(output):
    assert output.count("\r ") > 40 and "\x1b[32m" in output and "█" in output, output
    assert re.search(r"seller \d frozen", output), output


def check_without_colours(output):
    assert output.count("\r ") > 40 and not re.search(r"\x1b\[\d*m", output), output


def check_plain(output):
    assert output.isascii() and "\x1b" not in output and "\r" not in output, repr(output)
    table = output[output.index("refused writes"):]
    rows = re.findall(r"^ ([1-4]) .*?(\d+) +(\d+) +(\d+) +(\d+)(?: .*)?$", table, re.MULTILINE)
    keys = ("sold", "oversold", "lost_leases", "refused_writes")
    check_rounds([dict(zip(keys, map(int, row[1:5])), failed_calls=0) for row in rows])


def start_demo(folder):
    process = tap.start_sneck("demo", "--json", env={**os.environ, "TMPDIR": folder})
    tap.wait_until(lambda: len(children(process.pid)) == 8)
    return process


def children(pid):
    try:
        return open(f"/proc/{pid}/task/{pid}/children").read().split()
    except FileNotFoundError:
        return []


def test_an_interrupted_demo_cleans_up():
    for number in (signal.SIGINT, signal.SIGTERM):
        with in_memory() as folder:
            process = start_demo(folder)
            sellers = children(process.pid)
            process.send_signal(number)
            same(process.wait(), 128 + number)
            same(os.listdir(folder), [])
            assert not any(os.path.exists(f"/proc/{seller}") for seller in sellers)


def test_sellers_die_with_a_killed_demo_even_when_they_are_stopped():
    with in_memory() as folder:
        process = start_demo(folder)
        tap.wait_until(lambda: any(state(seller) == "T" for seller in children(process.pid)), seconds=20)
        sellers = children(process.pid)
        process.kill()
        process.wait()
        tap.wait_until(lambda: all(state(seller) in "ZX" for seller in sellers))


def state(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


@tap.time_limit(90)
def test_it_ends_in_time_on_a_loaded_machine():
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    rounds = json.loads(play("--json").stdout)["rounds"]
    for process in load:
        process.kill()
    same((rounds[1]["oversold"], rounds[3]["oversold"]), (0, 0))


def test_exit_codes():
    check(tap.sneck("demo", "fast"), 64)
    check(tap.sneck("demo", "--svg"), 64)
    check(tap.sneck("demo", "--help"), 0)
    check(tap.sneck("demo", env={**os.environ, "TMPDIR": "/nonexistent/folder"}), 70)


tap.main()
