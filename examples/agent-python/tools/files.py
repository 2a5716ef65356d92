"""Where the tools may read and write."""

import pathlib
import sys

REPO = pathlib.Path("repo").resolve()


def inside(name):
    """The path of a file in repo. Anything else ends the tool with an error."""
    path = (REPO / name).resolve()
    if REPO not in path.parents or not path.is_file():
        sys.exit(f"{name} is no file in repo")
    return path
