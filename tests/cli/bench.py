"""sneck bench: figures that make sense, in bounded time."""

import json

import tap
from holder import check, same


@tap.time_limit(60)
def test_json_figures_are_there_and_in_order():
    done = check(tap.sneck("bench", "--json", "--time", "200ms", "--threads", "3", "--processes", "2"), 0)
    figures = json.loads(done.stdout)
    for key in ("reentry", "pair", "processes"):
        assert 0 < figures[key]["p50_ns"] <= figures[key]["p99_ns"], figures
    for key in ("reentry", "pair", "threads", "processes"):
        assert figures[key]["per_second"] > 0, figures
    assert figures["reentry"]["p50_ns"] < figures["pair"]["p50_ns"], figures
    same((figures["threads_used"], figures["processes_used"]), (3, 2))


@tap.time_limit(60)
def test_the_table_has_a_line_a_figure():
    done = check(tap.sneck("bench", "-t", "50ms"), 0)
    lines = done.stdout.splitlines()
    same(len(lines), 5)
    for line, words in zip(lines[1:], ("re-entry", "free lock", "8 threads", "2 processes")):
        assert words in line and line.endswith("/s"), done.stdout


@tap.time_limit(60)
def test_it_leaves_nothing_in_the_store():
    check(tap.sneck("bench", "-t", "50ms"), 0)
    same(tap.sneck("ls", "-q").stdout, "")


@tap.time_limit(60)
def test_a_store_that_does_not_reach_across_processes_is_said_to():
    done = check(tap.sneck("bench", "--json", "-t", "50ms", "--store", "memory:"), 69)
    figures = json.loads(done.stdout)
    assert "across processes" in figures["processes"]["error"], figures
    assert figures["pair"]["per_second"] > 0, figures


def test_exit_codes():
    check(tap.sneck("bench", "door"), 64)
    check(tap.sneck("bench", "--time", "soon"), 64)
    check(tap.sneck("bench", "--time", "1h"), 64)
    check(tap.sneck("bench", "--threads", "0"), 64)
    check(tap.sneck("bench", "--processes", "1"), 64)
    check(tap.sneck("bench", "--store", "warp:"), 78)
    check(tap.sneck("bench", "--store", "sqlite:///nonexistent/folder/file.db"), 69)


tap.main()
