"""One store for all tests and all workers: what one of them compiled, no other compiles again.

It is found by content, so that it may outlive a run. A test that needs an empty one makes its own.
"""

import os

from policygen.paths import cache_folder

if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker has its environment from the first process
    os.environ["POLICYGEN_CACHE"] = str(cache_folder() / "tests")
os.environ.pop("CUDA_HOME", None)  # what is compiled with does not depend on the machine
# Tests start policygen hundreds of times: it is not compiled to bytecode each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
