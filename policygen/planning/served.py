"""Later architectures that a change serves, too."""

from collections.abc import Mapping

from policygen.bindings.archs import archs
from policygen.model.arch import arch_number
from policygen.model.plan import Plan
from policygen.model.tuning import TuningHeader


def served(plan: Plan, headers: Mapping[str, TuningHeader]) -> list[str]:
    """Later architectures that have no policy in a chain: they get what is written, too."""
    target = arch_number(plan.options.arch)
    written = {(a.target.header, a.target.namespace) for a in plan.actions if a.target and a.after}
    found: dict[tuple[str, str], list[str]] = {}
    for file in plan.files if not plan.policies else ():
        header = headers[file.path]
        for chain in header.chains:
            numbers = [arch_number(policy.arch) for policy in chain.policies]
            if target not in numbers or (file.path, chain.namespace) not in written:
                continue
            end = min((n for n in numbers if n > target), default=1 << 16)
            later = [a for a in archs() if target < arch_number(a) < end]
            if later:
                policy = next(p.name for p in chain.policies if arch_number(p.arch) == target)
                found.setdefault((policy, ", ".join(later)), []).append(file.path)
    return [
        f"{policy} serves {later}, too ({', '.join(dict.fromkeys(names))}): they get what is"
        " written"
        for (policy, later), names in found.items()
    ]
