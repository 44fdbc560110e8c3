"""The USDT probes are in the command and in the library, and the bpftrace scripts find them."""

import glob
import os
import re
import shutil
import subprocess

import tap
from holder import same

PROBES = {"acquire": 3, "lost": 4, "release": 3, "renew": 3, "wait": 1}
COMMAND = os.environ["SNECK"]
LIBRARY = f"{os.path.dirname(COMMAND)}/libsneck.so"


def probes(path):
    """The probes of the provider sneck in a file, each with the number of its arguments."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"Provider: sneck\s+Name: (\w+)\s+Location:.*\s+Arguments: (.*)", notes)
    if not found:
        raise tap.Skip("built without sys/sdt.h")
    return {name: len(arguments.split()) for name, arguments in found}


def test_every_probe_is_there_with_its_arguments():
    same(probes(COMMAND), PROBES)
    same(probes(LIBRARY), PROBES)


def test_the_scripts_use_probes_that_are_there():
    probes(COMMAND)
    scripts = glob.glob(f"{os.environ['SNECK_SOURCE']}/share/bpftrace/*.bt")
    same(len(scripts), 2)
    for path in scripts:
        with open(path, encoding="utf-8") as script:
            named = set(re.findall(r"^usdt:\$1:sneck:(\w+)", script.read(), re.MULTILINE))
        assert named and named <= set(PROBES), (path, named)
        if shutil.which("bpftrace") is None or os.geteuid() != 0:
            continue
        # A dry run: compiled, with the probes found in the file, and not loaded into the kernel.
        done = subprocess.run(["bpftrace", "-d", path, COMMAND], capture_output=True, text=True)
        same((path, done.returncode), (path, 0))


tap.main()
