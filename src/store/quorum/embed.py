#!/usr/bin/env python3
"""Turns the Lua scripts of a node into a C source: embed.py SCRIPTS_DIRECTORY OUTPUT. As store/redis/embed.py does."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "redis"))

from embed import entry, expand, head  # noqa: E402  (the one of store/redis)

SCRIPTS = ["vote", "renew", "release", "adopt", "inspect", "hello"]


def main():
    directory, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    parts = head("store/quorum/run.h") + ["const snk_script snk_node_scripts[SNK_NODE_SCRIPTS] = {"]
    for script in SCRIPTS:
        parts += entry(f"SNK_NODE_{script.upper()}", script, list(expand(directory / f"{script}.lua", "")))
    parts.append("};")
    output.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
