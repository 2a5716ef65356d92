#!/usr/bin/env python3
"""Replace one line of a file in repo, if it is still the line that people saw."""

import json
import os
import sys

from files import inside

args = json.load(sys.stdin)
path = inside(args["file"])
lines = path.read_text().splitlines(keepends=True)
at = args["line"] - 1
if at >= len(lines) or lines[at].rstrip("\n") != args["old"]:
    sys.exit(f"line {args['line']} of {args['file']} is not what the patch was made for; nothing was written")
lines[at] = lines[at].replace(args["old"], args["new"])
new = path.with_suffix(".new")
new.write_text("".join(lines))
os.replace(new, path)
json.dump({"file": args["file"], "line": args["line"]}, sys.stdout)
