"""Sums up a run of `meson test`: summary.py testlog.json STATUS [--figures], with the exit status of meson.

Shows the output of programs that failed, the figures that tests print if asked, why tests were skipped, and ends with
the line "N passed, N failed". Every subtest counts; so does, as one failure, a program that crashed, ran out of time
or did not run what it had announced.
"""

import json
import os
import re
import sys

PLAN = re.compile(r"1\.\.(\d+)(?:\s*#\s*skip\w*\s*(.*))?", re.IGNORECASE)
RESULT = re.compile(r"(ok|not ok)\b\s*\d*[\s-]*([^#]*)(?:(#\s*skip)\w*\s*(.*))?", re.IGNORECASE)
BAD_RESULTS = {"FAIL", "ERROR", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS"}


class Program:
    """What one test program did, from its line in the log."""

    def __init__(self, log):
        self.name = log["name"].split(" / ")[-1]
        self.output = (log["stdout"] or "").splitlines()
        self.errors = (log.get("stderr") or "").splitlines()
        self.passed = 0
        self.failed = 0
        self.skipped = []
        self.figures = [line[2:] for line in self.output if line.startswith("# figure:")]
        self.planned = None
        self.read_output()
        self.trouble = self.find_trouble(log["result"], log["returncode"])

    def read_output(self):
        why = ""  # a test says it in a comment of its own, before its result
        for line in self.output:
            if line.startswith("# skip:"):
                why = line[len("# skip:"):].strip()
            elif plan := PLAN.match(line):
                self.planned = int(plan[1])
                if self.planned == 0 and plan[2]:
                    self.skipped.append(f"{self.name}: {plan[2]}")
                    self.planned = 1
            elif result := RESULT.match(line):
                self.count(result, why)
                why = ""

    def count(self, result, why):
        if result[3]:  # also after "not ok", which is how cmocka writes it
            test = result[2].strip() or result[4]
            self.skipped.append(f"{self.name}, {test}: {why or 'no reason given'}")
        elif result[1] == "ok":
            self.passed += 1
        else:
            self.failed += 1

    def find_trouble(self, result, status):
        """What went wrong with the program as a whole, or None."""
        ran = self.passed + self.failed + len(self.skipped)
        if result == "TIMEOUT":
            return "ran out of time"
        if result == "INTERRUPT":
            return "was interrupted"
        if status < 0:
            return f"died of signal {-status}"
        if status != 0 and self.failed == 0:
            return f"ended with status {status}"
        if self.planned is None:
            return "printed no plan"
        if ran == 0 or ran != self.planned:
            return f"ran {ran} of {self.planned} tests"
        return None

    def show(self):
        print(f"--- {self.name} {self.trouble or 'failed'}")
        for line in self.output + self.errors:
            if not line.startswith("ok "):
                print("   ", line)


def read_logs(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


def main(path, meson_status, with_figures):
    logs = read_logs(path)
    programs = [Program(log) for log in logs]
    passed = sum(program.passed for program in programs)
    failed = sum(program.failed + (program.trouble is not None) for program in programs)
    skipped = [reason for program in programs for reason in program.skipped]
    if meson_status != 0 and not any(log["result"] in BAD_RESULTS for log in logs):
        print(f"meson test ended with status {meson_status}, although no test failed")
        failed += 1
    for program in programs:
        if program.failed or program.trouble:
            program.show()
        for figure in program.figures if with_figures else []:
            print(figure)
    for reason in skipped:
        print("skipped:", reason)
    if passed + failed == 0:
        print("no test ran")
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), "--figures" in sys.argv))
