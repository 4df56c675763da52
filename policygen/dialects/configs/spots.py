"""Where the values of a workload go, in whichever form its config is spelled."""

from dataclasses import replace

from policygen.bindings.load import is_of
from policygen.dialects.configs.place import ConfigSpot, PickerSpot
from policygen.dialects.configs.table_place import TableSpot, with_formulas
from policygen.dialects.protocol import TuningTree
from policygen.dialects.sites import site_of
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding
from policygen.model.selection import Selected
from policygen.source.spelling import text_of


def config_spot(
    benchmark: BenchmarkBinding, told: Selected, sources: TuningTree, arch: str
) -> ConfigSpot:
    """Where the values of a workload go."""
    version = sources.cub.bindings
    algorithm, site = site_of(benchmark, version, "configs")
    header = sources.headers.get(site.header)
    if header is None:
        raise InputError(f"the tree has no {site.header}")
    mine = [one for one in algorithm.families if one.site == site.name]
    asked = site.hub.removeprefix("default_") if site.table else site.hub
    binding = next(one for one in mine if asked.startswith(f"{one.name}<"))
    families = tuple(
        f
        for f in header.families
        if (is_of(f.name, binding) if site.table else f.name == binding.name)
    )
    if not families:
        raise InputError(f"{site.header} has no {binding.name}")
    labels = {m: rule.parameter for m, rule in binding.members.items() if rule.parameter}
    called = {m: (benchmark.called.get(label, label), label) for m, label in labels.items()}
    common = (told, site, binding, arch, families, version, header.aggregates, header.needed)
    if not site.table:
        kind = PickerSpot if site.targets else ConfigSpot
        return kind(*common, called)
    spans = told.entry[1].arg_spans if told.entry else ()
    arguments = tuple(text_of(sources.data[site.header], span) for span in spans)
    return with_formulas(TableSpot(*common, called, benchmark=benchmark, arguments=arguments))


def copied(spot: ConfigSpot) -> ConfigSpot | None:
    """The same for its architecture alone; none where nothing of it is for others."""
    if not isinstance(spot, TableSpot) or spot.copied:
        return None
    return replace(spot, own=True)
