#!/usr/bin/env python3
"""Turns the Lua scripts into a C source: embed.py SCRIPTS_DIRECTORY OUTPUT.

A line `--@include NAME` stands for lib/NAME.lua; `layout…` for that of the layout (hash…, string…). Comments and
indentation are left out of what is sent, and the SHA-1 that EVALSHA wants is computed here.
"""

import hashlib
import pathlib
import sys

LAYOUTS = ["hash", "string"]
SCRIPTS = ["acquire", "renew", "release", "break", "inspect", "crowd_acquire", "crowd_renew", "crowd_release", "tally",
           "version", "together", "ghosts", "keep"]


def expand(path, layout):
    for line in path.read_text().splitlines():
        text = line.strip()
        if text.startswith("--@include "):
            name = text.split()[1].replace("layout", layout)
            yield from expand(path.parent / "lib" / f"{name}.lua" if path.parent.name != "lib"
                              else path.parent / f"{name}.lua", layout)
        elif text and not text.startswith("--"):
            yield text


def quote(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def entry(enumerator, script, lines):
    """The initialiser of one snk_script."""
    text = "".join(line + "\n" for line in lines)
    digest = hashlib.sha1(text.encode()).hexdigest()
    return [f"        [{enumerator}] = {{",
            f'            .name = "{script}",',
            f'            .sha = "{digest}",',
            "            .text =",
            *("                " + quote(line) for line in lines),
            "            ,",
            f"            .length = {len(text.encode())},",
            "        },"]


def head(header):
    return ["/* Made by embed.py from scripts/. */", f'#include "{header}"', "",
            "/* Longer than what ISO C promises; both our compilers take it. */",
            '#pragma GCC diagnostic ignored "-Woverlength-strings"', ""]


def main():
    directory, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    parts = head("store/redis/scripts.h") + ["const snk_script snk_scripts[SNK_LAYOUTS][SNK_SCRIPTS] = {"]
    for layout in LAYOUTS:
        parts.append(f"    [SNK_LAYOUT_{layout.upper()}] = {{")
        for script in SCRIPTS:
            parts += entry(f"SNK_SCRIPT_{script.upper()}", script, list(expand(directory / f"{script}.lua", layout)))
        parts.append("    },")
    parts.append("};")
    output.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
