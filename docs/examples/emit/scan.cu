// The exclusive sum of bytes, as CUB tunes it and as it was measured here: the same result, in less time.

#include <cub/device/device_scan.cuh>

#include <cuda/functional>
#include <cuda/std/functional>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <my_tunings.cuh>

#define CHECK(call)                                                              \
  if (const cudaError_t error = (call); error != cudaSuccess)                    \
  {                                                                              \
    std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
    std::exit(EXIT_FAILURE);                                                     \
  }

using selector =
  my_tunings::scan<const std::int8_t*, std::int8_t*, std::int32_t, unsigned int, cuda::std::plus<>, false>;

template <class Env>
void sums(const std::int8_t* in, std::int8_t* out, unsigned int count, Env env)
{
  CHECK(cub::DeviceScan::ExclusiveScan(in, out, cuda::std::plus<>{}, std::int8_t{}, count, env));
}

// The algorithm takes temporary storage from the device's pool: what was freed stays there for the next call.
void keep_memory()
{
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  std::uint64_t all = UINT64_MAX;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

// The median time of a call, in microseconds.
template <class Call>
float median_time(cudaStream_t stream, Call call)
{
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> times(201);
  for (float& time : times)
  {
    CHECK(cudaEventRecord(begin, stream));
    call();
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&time, begin, end));
  }
  std::nth_element(times.begin(), times.begin() + 100, times.end());
  return 1000.f * times[100];
}

int main()
{
  constexpr unsigned int count = 1u << 28;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  keep_memory();
  std::vector<std::int8_t> bytes(count), results[2] = {bytes, bytes};
  for (unsigned int i = 0, state = 2026; i < count; ++i)
  {
    bytes[i] = static_cast<std::int8_t>((state = state * 1664525u + 1013904223u) >> 24);
  }
  std::int8_t *in, *out;
  CHECK(cudaMalloc(&in, count));
  CHECK(cudaMalloc(&out, count));
  CHECK(cudaMemcpy(in, bytes.data(), count, cudaMemcpyHostToDevice));

  const auto cubs  = cuda::std::execution::env{cuda::stream_ref{stream}};
  const auto tuned = cuda::std::execution::env{cuda::stream_ref{stream}, cuda::execution::tune(selector{})};
  float times[2] = {};
  for (int round = 0; round < 4; ++round)
  {
    for (int side : {0, 1, 1, 0})
    {
      times[side] += median_time(stream, [&] {
        side == 0 ? sums(in, out, count, cubs) : sums(in, out, count, tuned);
      });
      CHECK(cudaMemcpy(results[side].data(), out, count, cudaMemcpyDeviceToHost));
    }
  }
  const bool same = results[0] == results[1];
  std::printf("CUB's own tuning %8.1f us\n", times[0] / 8);
  std::printf("my_tunings.cuh   %8.1f us, %.3f times as fast\n", times[1] / 8, times[0] / times[1]);
  std::printf("the results are %s\n", same ? "the same" : "DIFFERENT");
  return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
