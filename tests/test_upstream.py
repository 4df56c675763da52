"""`make upstream`: shipped results become commits, patches and review pages."""

import shutil
import subprocess

import pytest

from benchmarks import upstream
from tests.real_trees import tree


@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.slow
def test_an_algorithm_becomes_a_patch_with_its_review(tmp_path, monkeypatch, capsys):
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A Maintainer")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "maintainer@example.org")
    checkout, out = tmp_path / "cccl", tmp_path / "series"
    shutil.copytree(tree("3.6.0"), checkout, symlinks=True)
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "CUB 3.6.0")):
        subprocess.run(["git", "-C", checkout, *words], check=True)
    assert (
        upstream.main([str(checkout), str(out), "--only", "cub.bench.scan.exclusive.by_key"]) == 0
    )
    patch = (out / "0001-Tune-scan_by_key-for-sm90.patch").read_text("utf-8")
    assert "- cub.bench.scan.exclusive.by_key KeyT=I32 ValueT=I32 OffsetT=I32: 1.027" in patch
    assert "-                          LOAD_DEFAULT," in patch
    assert "+                          LOAD_CA," in patch
    review = (out / "0001-scan_by_key.md").read_text("utf-8")
    assert "policygen apply --from h100" in review
    assert "nothing was compiled" in review
    _, _, row = (out / "index.md").read_text("utf-8").splitlines()
    changed = "2 insertions(+), 1 deletion(-)"
    assert row.startswith(f"| Tune scan_by_key for sm90 | 1.021, 1.027 | {changed} | 0 |")
    assert row.endswith("| yes |")
    assert row in capsys.readouterr().out
