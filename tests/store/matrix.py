"""docs/matrix.md is what the suite store-kinds says about each store."""

import os

import store_matrix
import tap

SOURCE = os.environ["SNECK_SOURCE"]
PROGRAM = os.path.join(os.path.dirname(os.environ["SNECK"]), "tests", "store-kinds")


def test_the_page_is_what_a_run_gives():
    made = store_matrix.page(PROGRAM, f"{SOURCE}/tests/store/kinds.c")
    kept = open(f"{SOURCE}/docs/matrix.md").read()
    assert made == kept, f"docs/matrix.md is not what a run gives; make it anew with ./dev matrix:\n{made}"


tap.main()
