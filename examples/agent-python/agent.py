#!/usr/bin/env python3
"""An agent for Placet that makes the checks of a small repository pass.

It is started once for each decision. What it knows stands in its input, so it can
wait a week for a person between two decisions, on another machine if need be. Another
agent would ask a model here; this one knows one repair, that of a misspelt name.
"""

import difflib
import json
import re
import sys


def decide(steps):
    """The next decision, from the steps so far."""
    if not steps:
        return call("check", {}, "see what fails")
    last = steps[-1]
    if last["status"] != "done":  # denied, refused, failed: the observation says why
        told = last.get("observation", {})
        return fail(f"{last.get('tool', 'A step')} did not work: {told.get('message', last['status'])}")
    result = last.get("result")
    if last["tool"] == "check":
        return after_check(result, steps)
    if last["tool"] == "read_file":
        return after_reading(result, newest(steps, "check"))
    return call("check", {}, "see whether the patch helped")


def after_check(result, steps):
    if result["ok"]:
        return {"kind": "complete", "result": {"patches": [s["args"] for s in steps if s["tool"] == "apply_patch"]}}
    if not result.get("name"):
        return fail("The checks fail for a reason that I cannot repair: " + result["said"])
    return call("read_file", {"file": result["file"]}, f"{result['name']} is not defined in {result['file']}")


def after_reading(result, check):
    lines, wrong = result["lines"], check["name"]
    words = set(re.findall(r"[A-Za-z_]\w*", "\n".join(lines))) - {wrong}
    near = difflib.get_close_matches(wrong, sorted(words), n=1)
    if not near:
        return fail(f"Nothing in {check['file']} is called like {wrong}.")
    old = lines[check["line"] - 1]
    new = re.sub(rf"\b{re.escape(wrong)}\b", near[0], old)
    patch = {"file": check["file"], "line": check["line"], "old": old, "new": new}
    return call("apply_patch", patch, f"{wrong} looks like a misspelt {near[0]}")


def newest(steps, tool):
    return next(s["result"] for s in reversed(steps) if s.get("tool") == tool)


def call(tool, args, reason):
    return {"kind": "tool_call", "tool": tool, "args": args, "reason": reason}


def fail(message):
    return {"kind": "fail", "message": message}


if __name__ == "__main__":
    json.dump(decide(json.load(sys.stdin)["steps"]), sys.stdout)
