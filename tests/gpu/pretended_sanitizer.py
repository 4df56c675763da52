"""A compute-sanitizer that only pretends to be it."""

import sys
from textwrap import dedent

INVALID = """\
========= Invalid __global__ read of size 4 bytes
=========     at saxpy(const float *, float *)+0x90 in saxpy.cu:9
=========     by thread (255,0,0) in block (3,0,0)
"""


def sanitizing(folder):
    """It starts the program, and says of each check of some variants what is wrong."""
    path = folder / "compute-sanitizer"
    path.write_text(
        dedent(f"""\
        #!{sys.executable}
        import json, os, subprocess, sys
        at = sys.argv.index("--log-file")
        log, command = sys.argv[at + 1].replace("%p", str(os.getpid())), sys.argv[at + 2:]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE)
        for line in sys.stdin.buffer:
            asked = json.loads(line)
            names = [one[0] for one in asked.get("functions", ())]
            if asked["do"] in ("check", "reference") and set(names) & set({{bad}}):
                with open(log, "a") as file:
                    file.write({INVALID!r})
            worker.stdin.write(line)
            worker.stdin.flush()
        worker.stdin.close()
        sys.exit(worker.wait())
        """)
    )
    path.chmod(0o755)

    def bad(*labels):
        path.write_text(path.read_text().replace("{bad}", repr(labels)))
        return path

    return bad
