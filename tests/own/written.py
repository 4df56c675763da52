"""Workloads of one's own for tests: particles, the heaviest of which is wanted."""

HEADER = """\
#pragma once
#include <cuda/std/cstdint>
namespace sim
{
struct Particle
{
  double x;
  double y;
  float mass;
  int id;
};
struct heavier
{
  __host__ __device__ Particle operator()(const Particle& left, const Particle& right) const
  {
    return left.mass < right.mass || (left.mass == right.mass && left.id < right.id) ? right : left;
  }
};
struct make_particle
{
  __host__ __device__ Particle operator()(long long index, unsigned long long random) const
  {
    return {0.5, 1.5, static_cast<float>(random >> 40), static_cast<int>(index)};
  }
};
struct same_id
{
  __host__ __device__ bool operator()(const Particle& left, const Particle& right) const
  {
    return left.id == right.id;
  }
};
} // namespace sim
"""
WORKLOAD = """\
algorithm = "DeviceReduce::Reduce"
header = "particle.cuh"
operator = "sim::heavier"
[types]
T = "sim::Particle"
[[size]]
elements = 1_000_000
[[size]]
elements = 20_000_000
weight = 3
[input]
how = "generator"
generator = "sim::make_particle"
"""


def write_particles(folder, *changed, name="particles"):
    """The workload's file, with some of its text in the place of other."""
    text = WORKLOAD
    for old, new in changed:
        assert old in text
        text = text.replace(old, new)
    (folder / "particle.cuh").write_text(HEADER)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path
