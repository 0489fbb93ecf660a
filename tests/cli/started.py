"""`onegrad …` in processes of their own, forked from one that has imported everything.

`python -m tests.cli.started` is that one: to each line of its input it answers with an exit code.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path


def onegrad(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` gives back."""
    words = [str(word) for word in arguments]
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("out", "error")]
        asked = {"words": words, "cwd": str(cwd or Path.cwd()), "paths": paths}
        server = _server()
        server.stdin.write(json.dumps(asked | {"environment": dict(os.environ)}) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        said = [Path(path).read_text(encoding="utf-8") for path in paths]
    return subprocess.CompletedProcess(words, code, *said)


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    atexit.register(server.communicate)
    return server


def _become(asked: dict) -> None:
    """The process that was asked for: its files, its folder, its words."""
    for number, path in enumerate((os.devnull, *asked["paths"])):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["onegrad", *asked["words"]]


def main() -> None:
    for name in ("degree.report", "figures.draw", "predict.predict", "runs.run", "spectrum.report"):
        import_module(f"onegrad.{name}")
    commands = import_module("onegrad.cli.commands")
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(json.loads(line))
            commands.main()
            sys.exit()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
