// Five algorithms of Thrust, timed; nothing in this file knows of tunings.

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct mixed
{
  __host__ __device__ int operator()(std::uint64_t index) const
  {
    std::uint64_t bits = index * 0x9E3779B97F4A7C15u;
    bits               = (bits ^ (bits >> 31)) * 0xBF58476D1CE4E5B9u;
    return static_cast<int>(bits >> 33);
  }
};

struct small
{
  __host__ __device__ std::int8_t operator()(int value) const
  {
    return static_cast<std::int8_t>(value & 3);
  }
};

struct runs
{
  __host__ __device__ int operator()(std::uint64_t index) const
  {
    return static_cast<int>(index / 6);
  }
};

// A comparator: thrust::sort of numbers without one is a radix sort.
struct by_last_bits
{
  __host__ __device__ bool operator()(int left, int right) const
  {
    return (left ^ 0x55) < (right ^ 0x55);
  }
};

struct even
{
  __host__ __device__ bool operator()(int value) const
  {
    return value % 2 == 0;
  }
};

// The median time of eleven runs in microseconds; `prepare` is not timed.
template <class Prepare, class Run>
float median_time(Prepare prepare, Run run)
{
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int round = 0; round < 12; ++round)
  {
    prepare();
    cudaEventRecord(begin);
    run();
    cudaEventRecord(end);
    if (cudaEventSynchronize(end) != cudaSuccess)
    {
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(cudaGetLastError()));
      std::exit(1);
    }
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    times.push_back(1000 * milliseconds);
  }
  std::sort(times.begin() + 1, times.end()); // the first run warms up
  return times[6];
}

// A sum over the bits of all values, which depends on their order.
template <class Vector>
std::uint64_t digest(const Vector& values, std::size_t count)
{
  std::vector<typename Vector::value_type> copy(count);
  thrust::copy_n(values.begin(), count, copy.begin());
  std::uint64_t sum = 14695981039346656037u;
  for (auto value : copy)
  {
    sum = (sum ^ static_cast<std::uint64_t>(value)) * 1099511628211u;
  }
  return sum;
}

int main(int argc, char** argv)
{
  const std::size_t count = std::size_t{1} << (argc > 1 ? std::atoi(argv[1]) : 27);
  int devices             = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
  {
    std::fprintf(stderr, "%s:%d: no GPU\n", __FILE__, __LINE__);
    return 1;
  }
  thrust::device_vector<int> values(count), keys(count), out(count), other(count);
  thrust::device_vector<std::int8_t> bytes(count), sums(count);
  thrust::transform(thrust::counting_iterator<std::uint64_t>(0),
                    thrust::counting_iterator<std::uint64_t>(count),
                    values.begin(),
                    mixed{});
  thrust::transform(values.begin(), values.end(), bytes.begin(), small{});
  thrust::transform(thrust::counting_iterator<std::uint64_t>(0),
                    thrust::counting_iterator<std::uint64_t>(count),
                    keys.begin(),
                    runs{});
  const auto stream = thrust::cuda::par_nosync;
  const auto none   = [] {};
  std::size_t kept  = 0;

  float time = median_time([&] { out = values; }, [&] { thrust::sort(stream, out.begin(), out.end(), by_last_bits{}); });
  std::printf("sort          %9.1f us  %016llx\n", time, (unsigned long long) digest(out, count));

  time = median_time(none, [&] { thrust::exclusive_scan(stream, bytes.begin(), bytes.end(), sums.begin(), 0); });
  std::printf("exclusive_scan%9.1f us  %016llx\n", time, (unsigned long long) digest(sums, count));

  time = median_time(none, [&] {
    kept = thrust::reduce_by_key(stream, keys.begin(), keys.end(), values.begin(), out.begin(), other.begin()).first
         - out.begin();
  });
  std::printf("reduce_by_key %9.1f us  %016llx\n", time, (unsigned long long) digest(other, kept));

  time = median_time(
    [&] {
      out   = keys;
      other = values;
    },
    [&] { kept = thrust::unique_by_key(stream, out.begin(), out.end(), other.begin()).first - out.begin(); });
  std::printf("unique_by_key %9.1f us  %016llx\n", time, (unsigned long long) digest(other, kept));

  time = median_time(none, [&] {
    kept = thrust::copy_if(stream, values.begin(), values.end(), out.begin(), even{}) - out.begin();
  });
  std::printf("copy_if       %9.1f us  %016llx\n", time, (unsigned long long) digest(out, kept));
}
