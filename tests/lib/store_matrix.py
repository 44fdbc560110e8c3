"""Makes docs/matrix.md from a run of the suite store-kinds: what each store can do.

    store_matrix.py PROGRAM SOURCE    prints the page

The rows are the sections of the suite's source, the columns the stores it ran on. A test that fails, or is skipped for
another reason than that the store cannot do it, is an error.
"""

import os
import re
import subprocess
import sys

HEAD = """# What each store can do

Made by `./dev matrix` from a run of the suite `store-kinds`, which has the same cases for every store; a test sees to it
that this page is what a run gives. A number is how many cases passed there. *Barging* and *fair* is how the claims of a
case ask; those who wait are served in the order they came either way, where a store keeps an order at all.

Locks as one (`sneck_multi_lock`), segmented locks and the search for deadlocks are made of these inside the client, and
are there wherever their parts are.
"""


class Broken(Exception):
    """The run does not say what each store can do."""


def sections(source):
    """The section of each test, in the order of the source."""
    found = {}
    section = ""
    for line in open(source):
        if match := re.match(r"/\* ---- (.*?) -*\s*\*/", line):
            section = match[1]
        elif match := re.match(r"static void (test_\w+)\(void \*\*state\)", line):
            found[match[1]] = section
    return found


def run(program):
    """Runs the suite; what it printed."""
    return subprocess.run([program], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"}).stdout


def results_of(output):
    """What came of each test: (store, fair, test, reason), where the reason is None if it passed."""
    reason = None
    for line in output.splitlines():
        if match := re.match(r"# skip: (.*)", line):
            reason = match[1]
        elif match := re.match(r"(not )?ok \d+ (-|# SKIP) (.*?)(, fair)?: (test_\w+)", line):
            skipped = match[2] == "# SKIP"
            if (match[1] and not skipped) or (skipped and not (reason or "").startswith("SNECK_UNSUPPORTED")):
                raise Broken(f"{match[3]}: {match[5]} did not pass: {reason}")
            yield match[3], bool(match[4]), match[5], reason if skipped else None
            reason = None


def cell(reasons):
    """What a run of one section on one store comes to."""
    unsupported = sorted({reason for reason in reasons if reason is not None})
    passed = sum(reason is None for reason in reasons)
    return "; ".join(([str(passed)] if passed else []) + unsupported)


def page(output, source):
    section_of = sections(source)
    results = {}
    stores = []
    for store, fair, test, reason in results_of(output):
        if store not in stores:
            stores.append(store)
        results.setdefault((section_of[test], fair), {}).setdefault(store, []).append(reason)
    if not results:
        raise Broken("no test ran")
    stores.sort()
    lines = [HEAD, "| | | " + " | ".join(stores) + " |", "|---|---|" + "---|" * len(stores)]
    for section in dict.fromkeys(section_of.values()):
        for fair in (False, True):
            row = results[section, fair]
            cells = " | ".join(cell(row[store]) for store in stores)
            lines.append(f"| {section} | {'fair' if fair else 'barging'} | {cells} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(run(sys.argv[1]), sys.argv[2]))
