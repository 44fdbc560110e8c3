"""sneck metrics, and the alert rules and the dashboard that read what it writes."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import urllib.error
import urllib.request

import tap
from holder import Holder, Waiter, check, same

SHARE = f"{os.environ['SNECK_SOURCE']}/share"


def promtool(*arguments, **options):
    if shutil.which("promtool") is None:
        raise tap.Skip("no promtool here")
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, **options)
    same((done.returncode, done.stderr), (0, done.stderr))
    return done.stdout


def value(page, series):
    found = [line.rsplit(" ", 1)[1] for line in page.splitlines() if line.rsplit(" ", 1)[0] == series]
    same((series, len(found)), (series, 1))
    return float(found[0])


def families(page):
    return set(re.findall(r"^# TYPE (\w+)", page, re.MULTILINE))


def start_listening(*arguments):
    process = tap.start_sneck("metrics", "--listen", "127.0.0.1:0", *arguments)
    line = process.stderr.readline()
    if "built without" in line:
        raise tap.Skip(line.strip())
    return process, re.search(r"http://\S+/", line).group(0)


def get(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_it_counts_what_is_held_and_waited_for_by_class():
    holders = [Holder("job/a"), Holder("job/b"), Holder("door")]
    waiter = Waiter("job/a")
    page = check(tap.sneck("metrics"), 0).stdout
    same(value(page, 'sneck_store_held{lock="job"}'), 2)
    same(value(page, 'sneck_store_waiting{lock="job"}'), 1)
    same(value(page, 'sneck_store_held{lock="door"}'), 1)
    same(value(page, 'sneck_store_held{lock="other"}'), 0)
    same(value(page, "sneck_store_up"), 1)
    assert value(page, 'sneck_store_oldest_hold_seconds{lock="job"}') > 0
    chosen = check(tap.sneck("metrics", "do*"), 0).stdout
    assert 'sneck_store_held{lock="job"}' not in chosen
    same(value(chosen, 'sneck_store_held{lock="door"}'), 1)
    del holders, waiter


def test_classes_are_capped_and_odd_names_escaped():
    holders = [Holder('quo"te\\/1')]
    page = check(tap.sneck("metrics"), 0).stdout
    same(value(page, 'sneck_store_held{lock="quo\\"te\\\\"}'), 1)
    del holders


def test_series_exist_from_the_start_and_suit_prometheus():
    page = check(tap.sneck("metrics"), 0).stdout
    for series in ('sneck_lost_total{lock="other",cause="expired"}', 'sneck_acquire_total{lock="other",result="timeout"}',
                   'sneck_renewals_total{result="failed"}', 'sneck_watchdog_findings_total{finding="renewal-stuck"}',
                   'sneck_recoveries_total{remedy="reconnect",result="failed"}',
                   'sneck_wait_seconds_count{lock="other"}', 'sneck_events_total{kind="lost"}'):
        same((series, value(page, series)), (series, 0))
    promtool("check", "metrics", input=page)


def test_a_store_that_is_away_is_a_figure_too():
    done = tap.sneck("metrics", "--store", "redis://127.0.0.1:1/?timeout=300")
    same(done.returncode, 69)
    same(value(done.stdout, "sneck_store_up"), 0)


def test_a_text_file_is_written_whole():
    os.umask(0o022)
    with open("sneck.prom", "w", encoding="utf-8") as old:
        old.write("old\n")
    inode = os.stat("sneck.prom").st_ino
    same(check(tap.sneck("metrics", "--textfile", "sneck.prom"), 0).stdout, "")
    assert os.stat("sneck.prom").st_ino != inode  # another file took its place
    same(stat.S_IMODE(os.stat("sneck.prom").st_mode), 0o644)
    with open("sneck.prom", encoding="utf-8") as written:
        assert "sneck_store_up 1\n" in written.read()
    same([name for name in os.listdir(".") if name.startswith("sneck.prom.")], [])
    same(tap.sneck("metrics", "--textfile", "no/such/place").returncode, 70)


def test_it_serves_until_a_signal_comes():
    process, url = start_listening()
    kind, page = get(url + "metrics")
    assert kind.startswith("text/plain; version=0.0.4"), kind
    same(value(page, "sneck_store_up"), 1)
    holder = Holder("door")
    same(value(get(url + "metrics")[1], 'sneck_store_held{lock="door"}'), 1)
    same(get(url + "healthz")[1], "ok\n")
    try:
        get(url + "secrets")
        raise AssertionError("served what is not there")
    except urllib.error.HTTPError as error:
        same(error.code, 404)
    process.send_signal(signal.SIGTERM)
    same(process.wait(), 0)
    del holder


def test_bad_uses_are_refused():
    same(tap.sneck("metrics", "a", "b").returncode, 64)
    same(tap.sneck("metrics", "--listen", "nowhere:x").returncode, 64)
    same(tap.sneck("metrics", "--listen", "0", "--textfile", "x").returncode, 64)


def exported():
    page = check(tap.sneck("metrics"), 0).stdout
    return families(page)


def names_in(text):
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in re.findall(r"\bsneck_\w+", text)}


def test_the_alert_rules_are_sound_and_fire_when_they_should():
    with open(f"{SHARE}/prometheus/sneck.rules.yml", encoding="utf-8") as rules:
        same(names_in("".join(re.findall(r"(?s)expr:(.*?)(?:labels|for):", rules.read()))) - exported(), set())
    promtool("check", "rules", f"{SHARE}/prometheus/sneck.rules.yml")
    promtool("test", "rules", f"{SHARE}/prometheus/sneck.rules.test.yml")


def expressions(dashboard):
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_the_dashboard_asks_for_what_there_is():
    with open(f"{SHARE}/grafana/sneck.json", encoding="utf-8") as file:
        dashboard = json.load(file)
    found = expressions(dashboard)
    same(names_in(" ".join(found)) - exported(), set())
    # Each label that a panel splits by is one of that series.
    page = check(tap.sneck("metrics"), 0).stdout
    for expression in found:
        for labels, name in re.findall(r"by \(([\w, ]+)\) \((?:\w+\()?(sneck_\w+)", expression):
            line = next(line for line in page.splitlines() if line.startswith(name))
            for label in set(labels.split(", ")) - {"instance", "job"}:
                assert f'{label}="' in line, f"{name} has no label {label}: {line}"
    # Grafana's own variables stand for something that Prometheus can read.
    rules = [f"      - record: panel:{number}\n        expr: {json.dumps(re.sub('[$]__rate_interval', '5m', expression))}"
             for number, expression in enumerate(found)]
    with open("panels.yml", "w", encoding="utf-8") as file:
        file.write("groups:\n  - name: panels\n    rules:\n" + "\n".join(rules) + "\n")
    promtool("check", "rules", "panels.yml")



tap.main()
