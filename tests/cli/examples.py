"""The examples do what they say."""

import os
import re
import subprocess

import tap
from holder import Holder, check, same, waiters

BUILD = os.path.dirname(os.environ["SNECK"])
SOURCE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples"))


def start(program, *arguments):
    return subprocess.Popen([f"{BUILD}/examples/{program}", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def run(program, *arguments):
    process = start(program, *arguments)
    output, errors = process.communicate()
    same(errors, "")
    return process.returncode, output


@tap.time_limit(60)
def test_the_stock_is_never_oversold():
    same(run("stock", "shelf", "fill", "20"), (0, ""))
    sellers = [start("stock", "shelf", "sell") for _ in range(30)]
    results = [seller.communicate() + (seller.returncode,) for seller in sellers]
    items = sorted(int(re.search(r"sold item (\d+)", output)[1]) for output, _, code in results if code == 0)
    same(items, list(range(1, 21)))
    same([output for output, _, code in results if code == 3], 10 * ["sold out\n"])
    same([errors for _, errors, _ in results], 30 * [""])


def test_a_seller_waits_for_the_lock():
    same(run("stock", "shelf", "fill", "5"), (0, ""))
    holder = Holder("shelf")
    seller = start("stock", "shelf", "sell")
    tap.wait_until(lambda: waiters("shelf") == 1)
    same(open("shelf").read().split()[0], "5")
    holder.let_go()
    same((seller.communicate()[0], seller.returncode), ("sold item 5\n", 0))


def test_the_stock_refuses_a_late_seller():
    same(run("stock", "shelf", "fill", "5"), (0, ""))
    same(run("stock", "shelf", "sell"), (0, "sold item 5\n"))
    with open("shelf", "w") as shelf:
        shelf.write(f"{4:<20} {2**63:<20}\n")  # somebody with a higher token was here
    seller = start("stock", "shelf", "sell")
    output, errors = seller.communicate()
    same((output, seller.returncode), ("", 1))
    assert "refused" in errors, errors


@tap.time_limit(60)
def test_one_rebuilds_the_missing_cache_and_the_others_wait_for_it():
    processes = [start("cache_rebuild", "cache", "60") for _ in range(6)]
    results = [process.communicate() for process in processes]
    same([errors for _, errors in results], 6 * [""])
    words = sorted(output.split(":")[0] for output, _ in results)
    same(words, 5 * ["fresh"] + ["rebuilt"])
    same(len({output.split(": ")[1] for output, _ in results}), 1)


@tap.time_limit(60)
def test_a_stale_cache_is_served_while_somebody_rebuilds_it():
    with open("cache", "w") as cache:
        cache.write("old\n")
    os.utime("cache", (0, 0))
    builder = Holder("cache")
    same(run("cache_rebuild", "cache", "60"), (0, "stale: old\n"))
    builder.let_go()
    code, output = run("cache_rebuild", "cache", "60")
    assert code == 0 and output.startswith("rebuilt: built by process"), output
    code, output = run("cache_rebuild", "cache", "60")
    assert code == 0 and output.startswith("fresh: built by process"), output


def once(*arguments):
    return subprocess.run(["sh", f"{SOURCE}/once.sh", *arguments], capture_output=True, text=True)


def test_the_cron_job_runs():
    same(check(once("report", "echo", "done"), 0).stdout, "done\n")
    check(once("report", "sh", "-c", "exit 7"), 7)
    check(once("report"), 64)


def test_the_cron_job_is_skipped_quietly_while_the_last_one_runs():
    holder = Holder("report")
    done = check(once("report", "echo", "done"), 0)
    same((done.stdout, done.stderr), ("", ""))
    holder.let_go()
    same(check(once("report", "echo", "done"), 0).stdout, "done\n")


tap.main()
