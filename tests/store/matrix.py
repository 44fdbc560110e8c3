"""The suite store-kinds, and whether docs/matrix.md is what it says about each store."""

import os
import re
import sys

import store_matrix

SOURCE = os.environ["SNECK_SOURCE"]
PROGRAM = os.path.join(os.path.dirname(os.environ["SNECK"]), "tests", "store-kinds")


def complaint(output):
    """What is wrong with the page; None when nothing is."""
    try:
        made = store_matrix.page(output, f"{SOURCE}/tests/store/kinds.c")
    except store_matrix.Broken as error:
        return str(error)
    kept = open(f"{SOURCE}/docs/matrix.md").read()
    return None if made == kept else f"docs/matrix.md is not what a run gives; make it anew with ./dev matrix:\n{made}"


def main():
    output = store_matrix.run(PROGRAM)
    plan = re.match(r"1\.\.(\d+)\n", output)
    if plan is None:
        sys.exit(f"{PROGRAM} did not run:\n{output}")
    number = int(plan[1]) + 1
    print(f"1..{number}")
    print(output[plan.end():], end="")
    wrong = complaint(output)
    for line in (wrong or "").splitlines():
        print(f"# {line}")
    print(f"{'ok' if wrong is None else 'not ok'} {number} - test_the_page_is_what_a_run_gives")
    sys.exit(wrong is not None)


main()
