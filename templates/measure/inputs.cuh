// Contents of buffers, and whether results are equal; what is generated depends on a seed and an index alone.
#include <cuda_runtime.h>

#include <cuda/std/complex>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <cuda/std/type_traits>

#include <cstdio>
#include <vector>

namespace policygen_inputs
{
constexpr int threads = 256;

inline unsigned long long seed = 0;

// A permutation of 64 bits, after Steele, Lea and Flood's SplitMix.
__host__ __device__ inline unsigned long long mixed(unsigned long long value)
{
  value += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

__host__ __device__ inline unsigned long long drawn(unsigned long long seed, long long index)
{
  return mixed(mixed(seed) ^ static_cast<unsigned long long>(index));
}

// In [0, 1).
__host__ __device__ inline double share(unsigned long long seed, long long index)
{
  return static_cast<double>(drawn(seed, index) >> 11) * 0x1p-53;
}

template <class T>
struct is_complex : ::cuda::std::false_type
{};
template <class T>
struct is_complex<::cuda::std::complex<T>> : ::cuda::std::true_type
{};

// Types of integers, those of 128 bits and bool included; all else is made of floats.
template <class T>
constexpr bool is_whole = ::cuda::std::is_integral<T>::value;

// Types of 16 bits convert to many, and to double through float alone.
template <class T>
__host__ __device__ double number(T value)
{
  if constexpr (::cuda::std::is_arithmetic<T>::value || is_whole<T>)
  {
    return static_cast<double>(value);
  }
  else
  {
    return static_cast<float>(value);
  }
}

template <class T>
__host__ __device__ T between(double at, T least, T most)
{
  const double low = number(least);
  if constexpr (is_whole<T>)
  {
    return static_cast<T>(floor((number(most) - low + 1) * at + low));
  }
  else
  {
    return static_cast<T>((number(most) - low) * at + low);
  }
}

template <class T>
__host__ __device__ T both(T left, T right)
{
  unsigned char bytes[sizeof(T)];
  for (int at = 0; at < static_cast<int>(sizeof(T)); ++at)
  {
    bytes[at] = reinterpret_cast<const unsigned char*>(&left)[at] & reinterpret_cast<const unsigned char*>(&right)[at];
  }
  T value;
  memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class F>
__global__ void each_kernel(long long count, F write)
{
  const long long step = static_cast<long long>(gridDim.x) * threads;
  for (long long at = static_cast<long long>(blockIdx.x) * threads + threadIdx.x; at < count; at += step)
  {
    write(at);
  }
}

template <class F>
cudaError_t each(long long count, F write)
{
  if (count > 0)
  {
    const long long blocks = (count + threads - 1) / threads;
    each_kernel<<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), threads>>>(count, write);
  }
  return cudaGetLastError();
}

// How many draws are joined bit by bit: the entropy axis of CCCL's benchmarks, in thousandths.
__host__ __device__ inline int joined(long long entropy)
{
  return entropy >= 1000 ? 0 : entropy >= 811 ? 1 : entropy >= 544 ? 2 : entropy >= 337 ? 3 : entropy >= 201 ? 4 : -1;
}

template <class T>
struct write_uniform
{
  T* to;
  T least;
  T most;
  int steps;
  unsigned long long seed;

  __device__ void operator()(long long at) const
  {
    if (steps < 0)
    {
      to[at] = between(share(seed, -1), least, most);
      return;
    }
    T value = between(share(seed, at), least, most);
    for (int step = 1; step <= steps; ++step)
    {
      value = both(value, between(share(seed + 1000 * step, at), least, most));
    }
    to[at] = value;
  }
};

// Uniform between two values.
template <class T>
cudaError_t uniform(T* to, long long count, long long entropy, T least, T most)
{
  return each(count, write_uniform<T>{to, least, most, joined(entropy), seed});
}

// Uniform over a type's values; of floats over the positive ones.
template <class T>
cudaError_t uniform(T* to, long long count, long long entropy = 1000)
{
  using limits = ::cuda::std::numeric_limits<T>;
  return uniform<T>(to, count, entropy, (limits::min)(), (limits::max)());
}
template <class T>
cudaError_t uniform(::cuda::std::complex<T>* to, long long count, long long entropy = 1000)
{
  return uniform(reinterpret_cast<T*>(to), 2 * count, entropy);
}

// Numbers from one to another.
template <class T>
cudaError_t ranged(T* to, long long count, double least, double most)
{
  return uniform<T>(to, count, 1000, static_cast<T>(least), static_cast<T>(most));
}
template <class T>
cudaError_t ranged(::cuda::std::complex<T>* to, long long count, double least, double most)
{
  return ranged(reinterpret_cast<T*>(to), 2 * count, least, most);
}

// Whole numbers over their type, others from 0 to 1: what is computed of them is no infinity, which hides mistakes.
template <class T>
cudaError_t plain(T* to, long long count)
{
  if constexpr (is_whole<T>)
  {
    return uniform(to, count);
  }
  else
  {
    return ranged(to, count, 0, 1);
  }
}

template <class T>
struct write_small
{
  T* to;
  int most;
  unsigned long long seed;

  __device__ void operator()(long long at) const
  {
    const int value = static_cast<int>(drawn(seed, at) % static_cast<unsigned>(2 * most + 1)) - most;
    if constexpr (is_complex<T>::value)
    {
      to[at] = T{static_cast<typename T::value_type>(value), static_cast<typename T::value_type>(0)};
    }
    else if constexpr (is_whole<T>)
    {
      to[at] = static_cast<T>(value);
    }
    else
    {
      to[at] = static_cast<T>(static_cast<float>(value));
    }
  }
};

// -1, 0 and 1: whatever the order of a sum, all that it passes is exact.
template <class T>
cudaError_t signs(T* to, long long count)
{
  return each(count, write_small<T>{to, 1, seed});
}

template <class T>
struct write_value
{
  T* to;
  T value;

  __device__ void operator()(long long at) const
  {
    to[at] = value;
  }
};

template <class T>
cudaError_t constant(T* to, long long count, T value)
{
  return each(count, write_value<T>{to, value});
}

template <class T>
struct write_index
{
  T* to;
  long long first;
  long long step;

  __device__ void operator()(long long at) const
  {
    to[at] = static_cast<T>(first + at * step);
  }
};

// first, first + step, …
template <class T>
cudaError_t counted(T* to, long long count, long long first = 0, long long step = 1)
{
  return each(count, write_index<T>{to, first, step});
}

template <class T>
struct write_steps
{
  T* to;
  unsigned long long seed;

  __device__ static int height(unsigned long long seed, long long at)
  {
    return static_cast<int>(drawn(seed, at) % 61);
  }
  __device__ void operator()(long long at) const
  {
    to[at] = static_cast<T>(static_cast<float>(height(seed, at) - height(seed, at - 1)));
  }
};

// What neighbours add up to lies between -60 and 60: prefixes are exact, also in 8 bits of a float.
template <class T>
cudaError_t steps(T* to, long long count)
{
  return each(count, write_steps<T>{to, seed});
}

template <class T>
struct write_ramp
{
  T* to;
  T step;

  __device__ void operator()(long long at) const
  {
    to[at] = static_cast<T>(static_cast<T>(at) * step);
  }
};

// 0, step, twice the step, …
template <class T>
cudaError_t ramp(T* to, long long count, T step)
{
  return each(count, write_ramp<T>{to, step});
}

template <class T>
struct write_rising
{
  T* to;
  double count;
  T least;
  T most;

  __device__ void operator()(long long at) const
  {
    to[at] = between(static_cast<double>(at) / count, least, most);
  }
};

// In ascending order, over a type's values; of floats over the positive ones.
template <class T>
cudaError_t rising(T* to, long long count)
{
  using limits = ::cuda::std::numeric_limits<T>;
  return each(count, write_rising<T>{to, static_cast<double>(count), (limits::min)(), (limits::max)()});
}

struct write_drawn
{
  unsigned char* to;
  unsigned long long seed;

  __device__ void operator()(long long at) const
  {
    to[at] = static_cast<unsigned char>(drawn(seed, at));
  }
};

// Whatever the type, bytes that were drawn.
template <class T>
cudaError_t random_bytes(T* to, long long count)
{
  const auto bytes = static_cast<long long>(sizeof(T)) * count;
  return each(bytes, write_drawn{reinterpret_cast<unsigned char*>(to), seed});
}

template <class T, class F>
struct write_made
{
  T* to;
  F make;
  unsigned long long seed;

  __device__ void operator()(long long at) const
  {
    to[at] = make(at, drawn(seed, at));
  }
};

// What a functor makes of an index and 64 random bits.
template <class T, class F>
cudaError_t made(T* to, long long count, F make)
{
  return each(count, write_made<T, F>{to, make, seed});
}

// The bytes of a file, again from its start where they are too few.
template <class T>
cudaError_t bytes_of(T* to, long long count, const char* path)
{
  std::FILE* const file = std::fopen(path, "rb");
  if (file == nullptr)
  {
    return cudaErrorInvalidValue;
  }
  std::vector<char> bytes(static_cast<size_t>(count) * sizeof(T));
  size_t have = std::fread(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  have -= have % sizeof(T);
  if (have == 0)
  {
    return cudaErrorInvalidValue;
  }
  for (size_t at = have; at < bytes.size(); ++at)
  {
    bytes[at] = bytes[at - have];
  }
  return cudaMemcpy(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
}

struct difference
{
  unsigned long long count;
  unsigned long long first;
};

template <class T>
struct differs
{
  const T* got;
  const T* expected;
  double tolerance;
  difference* found;

  __device__ static bool near(double left, double right, double tolerance)
  {
    const double larger = fmax(fabs(left), fabs(right));
    // Infinities and what is no number are near what is the same.
    return left == right || (isnan(left) && isnan(right)) || fabs(left - right) <= tolerance * larger;
  }
  __device__ bool same(long long at) const
  {
    if (tolerance > 0)
    {
      if constexpr (is_complex<T>::value)
      {
        return near(got[at].real(), expected[at].real(), tolerance) && near(got[at].imag(), expected[at].imag(), tolerance);
      }
      else if constexpr (::cuda::std::is_convertible<T, float>::value)
      {
        return near(number(got[at]), number(expected[at]), tolerance);
      }
    }
    const auto* left  = reinterpret_cast<const unsigned char*>(got + at);
    const auto* right = reinterpret_cast<const unsigned char*>(expected + at);
    for (int byte = 0; byte < static_cast<int>(sizeof(T)); ++byte)
    {
      if (left[byte] != right[byte])
      {
        return false;
      }
    }
    return true;
  }
  __device__ void operator()(long long at) const
  {
    if (!same(at))
    {
      atomicAdd(&found->count, 1ull);
      atomicMin(&found->first, static_cast<unsigned long long>(at));
    }
  }
};

template <class T>
struct add_up
{
  const T* values;
  unsigned long long* sum;

  __device__ void operator()(long long at) const
  {
    unsigned long long name = 0;
    for (int byte = 0; byte < static_cast<int>(sizeof(T)); ++byte)
    {
      name = mixed(name ^ reinterpret_cast<const unsigned char*>(values + at)[byte]);
    }
    atomicAdd(sum, name);
  }
};

// What an operation on the GPU finds; -1 where it fails.
template <class F>
long long told(F work, long long* first)
{
  difference* found = nullptr;
  difference host{0, ~0ull};
  if (cudaMalloc(&found, sizeof(difference)) != cudaSuccess)
  {
    return -1;
  }
  bool good = cudaMemcpy(found, &host, sizeof(difference), cudaMemcpyHostToDevice) == cudaSuccess;
  good      = good && work(found) == cudaSuccess;
  good      = good && cudaMemcpy(&host, found, sizeof(difference), cudaMemcpyDeviceToHost) == cudaSuccess;
  good      = cudaFree(found) == cudaSuccess && good;
  *first    = host.count ? static_cast<long long>(host.first) : -1;
  return good ? static_cast<long long>(host.count) : -1;
}

// How many elements differ, and which is the first; bit for bit without a tolerance.
template <class T>
long long compare(const T* got, const T* expected, long long count, double tolerance, long long* first)
{
  return told([=](difference* found) { return each(count, differs<T>{got, expected, tolerance, found}); }, first);
}

template <class T, class F>
struct differs_by
{
  const T* got;
  const T* expected;
  F same;
  difference* found;

  __device__ void operator()(long long at) const
  {
    if (!same(got[at], expected[at]))
    {
      atomicAdd(&found->count, 1ull);
      atomicMin(&found->first, static_cast<unsigned long long>(at));
    }
  }
};

// The same by a functor of two elements.
template <class T, class F>
long long compare_by(const T* got, const T* expected, long long count, F same, long long* first)
{
  return told([=](difference* found) { return each(count, differs_by<T, F>{got, expected, same, found}); }, first);
}

// Whether the same elements are there, in any order: 0 or 1.
template <class T>
long long compare_sets(const T* got, const T* expected, long long count, long long* first)
{
  const long long left  = told([=](difference* found) { return each(count, add_up<T>{got, &found->count}); }, first);
  const long long right = told([=](difference* found) { return each(count, add_up<T>{expected, &found->count}); }, first);
  *first                = -1;
  return left != right;
}
} // namespace policygen_inputs
