"""Compiles units on the workers of a cluster; what comes back is kept on this machine."""

import signal
from dataclasses import dataclass
from pathlib import Path

from policygen.cache import digest, keep, kept
from policygen.errors import ProcessError
from policygen.measure.objects import ObjectSource, as_made, as_refused, is_said_of_code, object_in
from policygen.proof.compile import MEMORY, RefusedError
from policygen.proof.toolchain import Toolchain
from policygen.search.cluster.answers import UnitAsk
from policygen.search.cluster.connection import ClusterClient, EndedWorkersError
from policygen.search.cluster.working import compile_unit

KIND = "cluster-objects"
"""Apart from objects of this machine: headers of the host's compiler may be others there."""


@dataclass(frozen=True, slots=True)
class ClusterCompiler:
    """What compiles, and where the objects lie."""

    cluster: ClusterClient
    toolchain: Toolchain
    folder: Path

    def make(self, source: ObjectSource) -> Path:
        """Has an object made, or takes the one that is kept; refused with the compiler's words."""
        trees = tuple(map(self.cluster.contents.folder, source.includes))
        key = digest(self.toolchain.version, *source.flags, source.text, "trees", *trees)
        known = kept(KIND, key)
        if known is None:
            known = self._made(UnitAsk(source.text, trees, source.arch))
            keep(KIND, key, known)
        return object_in(self.folder, key, known)

    def _made(self, unit: UnitAsk) -> bytes:
        try:
            return as_made(self.cluster.ask(compile_unit, unit, near=self._others()))
        except RefusedError as error:
            if not is_said_of_code(error):
                raise
            return as_refused(error)
        except EndedWorkersError as error:
            words = "the workers that compiled it have ended, one after the other"
            raise ProcessError(["nvcc"], -signal.SIGKILL, words, MEMORY) from error

    def _others(self) -> list[str]:
        """Workers on which nobody waits for a GPU meanwhile: all, where there are no such."""
        workers = self.cluster.workers()
        return [name for name, one in workers.items() if not one.has_gpu or one.threads > 1]
