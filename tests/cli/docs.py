"""The documentation names what exists."""

import os
import re
import shutil
import subprocess

import tap
from holder import same

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def pages():
    listed = [f"docs/{name}" for name in os.listdir(f"{ROOT}/docs") if name.endswith(".md")]
    return ["README.md", "CONTRIBUTING.md", *listed]


def test_every_test_named_in_the_tables_exists():
    named = re.findall(r"`(\w+)/(\w+):(\w+)`", read("docs/safety.md") + read("docs/coverage.md"))
    assert len(named) > 40, named
    missing = []
    for suite, file, test in named:
        paths = [f"tests/{suite}/{file}{ending}" for ending in (".c", ".py")]
        texts = [read(path) for path in paths if os.path.exists(f"{ROOT}/{path}")]
        if not any(re.search(rf"\btest_{test}\(", text) for text in texts):
            missing.append(f"{suite}/{file}:{test}")
    same(missing, [])


def test_every_link_leads_somewhere():
    broken = []
    for page in pages():
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(page)):
            target = os.path.join(ROOT, os.path.dirname(page), link)
            if "://" not in link and not os.path.exists(target):
                broken.append(f"{page}: {link}")
    same(broken, [])


def test_every_subcommand_has_a_man_page_that_names_its_flags():
    listed = tap.sneck("--help").stdout.split("Flags of every command:")[0]
    missing = []
    for command in re.findall(r"^  (\w+)  ", listed, re.MULTILINE):
        path = f"docs/man/sneck-{command}.1.scd"
        if not os.path.exists(f"{ROOT}/{path}"):
            missing.append(path)
            continue
        own = tap.sneck(command, "--help").stdout.split("Flags of every command:")[0]
        flags = re.findall(r"^ {2,6}(?:-\w, )?(--[a-z][a-z-]*)", own, re.MULTILINE)
        missing += [f"{path}: {flag}" for flag in flags if f"*{flag}*" not in read(path)]
    same(missing, [])


def test_every_man_page_can_be_made():
    if shutil.which("scdoc") is None:
        raise tap.Skip("no scdoc here")
    for name in os.listdir(f"{ROOT}/docs/man"):
        with open(f"{ROOT}/docs/man/{name}", encoding="utf-8") as source:
            done = subprocess.run(["scdoc"], stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        same((name, done.returncode, done.stderr), (name, 0, ""))


def test_the_exit_codes_of_the_readme_are_those_of_the_command():
    header = read("cli/exit.h")
    codes = {int(code) for code in re.findall(r"SNK_EXIT_\w+ = (\d+)", header)} - {0, 128}
    table = read("README.md").split("| exit code |")[1].split("\n\n")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("|")]
    documented = {int(code) for cell in first_cells for code in re.findall(r"\b(\d+)\b(?!\+)", cell)}
    same(codes - documented, set())


tap.main()
