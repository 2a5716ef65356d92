#!/usr/bin/env python3
"""Run the tests in repo. Prints whether they pass and, of a name that is not defined, where."""

import json
import re
import subprocess
import sys

done = subprocess.run(
    [sys.executable, "-B", "-m", "unittest", "discover", "--start-directory", "repo"],
    capture_output=True,
    text=True,
)
found = {"ok": done.returncode == 0}
if not found["ok"]:
    found["said"] = done.stderr[-2000:]
    at = re.findall(r'File ".*/repo/(\S+\.py)", line (\d+)', done.stderr)
    name = re.search(r"NameError: name '(\w+)' is not defined", done.stderr)
    if at and name:
        file, line = at[-1]
        found.update(file=file, line=int(line), name=name.group(1))
json.dump(found, sys.stdout)
