"""The example's workload of one's own, for tests: particles, the heaviest of which is wanted."""

import shutil
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "docs/examples/particles"


def write_particles(folder, *changed):
    """The workload's file beside its header, with some of its text in the place of other."""
    text = (EXAMPLE / "particles.toml").read_text()
    for old, new in changed:
        assert old in text
        text = text.replace(old, new)
    shutil.copy(EXAMPLE / "particle.cuh", folder)
    path = folder / "particles.toml"
    path.write_text(text)
    return path
