#!/usr/bin/env python3
"""Print the lines of a file in repo."""

import json
import sys

from files import inside

args = json.load(sys.stdin)
json.dump({"lines": inside(args["file"]).read_text().splitlines()}, sys.stdout)
