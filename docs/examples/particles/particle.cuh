// Particles of a simulation, and which of two is the heavier one.
#pragma once

#include <cuda/std/cstdint>

namespace sim
{
// 24 bytes.
struct Particle
{
  double x;
  double y;
  float mass;
  ::cuda::std::int32_t id;
};

// Of equally heavy ones the later: whatever the order in which they are compared, one wins.
struct heavier
{
  __host__ __device__ Particle operator()(const Particle& left, const Particle& right) const
  {
    const bool second = left.mass < right.mass || (left.mass == right.mass && left.id < right.id);
    return second ? right : left;
  }
};

// What the measurements run on: a particle for an index and 64 random bits.
struct any_particle
{
  __host__ __device__ Particle operator()(long long index, unsigned long long random) const
  {
    const auto part = [random](int shift) { return static_cast<double>((random >> shift) & 0xFFFF); };
    return {part(0), part(16), static_cast<float>(part(32)), static_cast<::cuda::std::int32_t>(index)};
  }
};
} // namespace sim
