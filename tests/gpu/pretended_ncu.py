"""An ncu that only pretends to be it."""

import sys
from textwrap import dedent

from policygen.gpu.tools import METRIC


def profiling(folder, *, error=None, lacking=0, before=1, told=None):
    """It starts the program, and tells of each check of a variant as of a launch.

    Before them stand launches of the reference; of the last variants it says nothing, or of all
    the same.
    """
    path = folder / "ncu"
    head = ["ID", "Process ID", "Kernel Name", METRIC]
    path.write_text(
        dedent(f"""\
        #!{sys.executable}
        import csv, json, os, subprocess, sys, threading
        at = sys.argv.index("--log-file")
        worker = subprocess.Popen(sys.argv[at + 2:], stdin=subprocess.PIPE)
        checked = []

        def tell():
            worker.wait()
            with open(sys.argv[at + 1], "w") as file:
                print("==PROF== Connected to process 1", file=file)
                if {error!r}:
                    print("==ERROR== " + {error!r}, file=file)
                table = csv.writer(file, quoting=csv.QUOTE_ALL)
                table.writerow({head!r})
                table.writerow(["", "", "", "%"])
                launched = ["reference"] * {before} + checked
                for number, one in enumerate(launched[: len(launched) - {lacking}]):
                    share = {told!r} or ("99" if one == "reference" else 10 + number)
                    table.writerow([number, 1, "saxpy", share])
            os._exit(worker.returncode)

        threading.Thread(target=tell).start()
        for line in sys.stdin.buffer:
            asked = json.loads(line)
            if asked["do"] == "check":
                checked += [asked["functions"][one][0] for one in asked["order"]]
            worker.stdin.write(line)
            worker.stdin.flush()
        worker.stdin.close()
        """)
    )
    path.chmod(0o755)
    return path
