#!/usr/bin/env python3
"""Makes one C string of SQL files: embed.py OUTPUT NAME FILE..."""

import pathlib
import sys


def quote(line):
    return '    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def main():
    output, name, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    parts = ["/* Made by embed.py. */", "/* Longer than what ISO C promises; both our compilers take it. */",
             '#pragma GCC diagnostic ignored "-Woverlength-strings"', "",
             f"extern const char {name}[];", f"const char {name}[] ="]
    for file in files:
        parts += [quote(line) for line in pathlib.Path(file).read_text().splitlines()]
    pathlib.Path(output).write_text("\n".join(parts) + ";\n")


if __name__ == "__main__":
    main()
