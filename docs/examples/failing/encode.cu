// Encodes runs of five keys with cub::DeviceRunLengthEncode, and checks the runs.

#include <cub/device/device_run_length_encode.cuh>

#include <cstdint>
#include <cstdio>

#ifndef MY_KEY
#  define MY_KEY large<256>
#endif
#ifndef MY_LENGTH
#  define MY_LENGTH int
#endif

template <int Bytes>
struct large
{
  int value[Bytes / 4];
  large() = default;
  __host__ __device__ explicit large(int i) : value{i} {}
  __host__ __device__ friend bool operator==(const large& a, const large& b) { return a.value[0] == b.value[0]; }
};

#ifdef MY_THREADS
struct selector
{
  __host__ __device__ constexpr cub::RleEncodePolicy operator()(cuda::compute_capability) const
  {
    return {cub::RleAlgorithm::lookback,
            {MY_THREADS, MY_ITEMS, cub::BLOCK_LOAD_DIRECT, cub::LOAD_DEFAULT, cub::BLOCK_SCAN_WARP_SCANS,
             {cub::LookbackDelayAlgorithm::no_delay, 0, 0}},
            {}};
  }
};
const cuda::std::execution::env env{cuda::execution::tune(selector{})};
#else
const cuda::std::execution::env<> env;
#endif

int main()
{
  constexpr int count = 1 << 16, runs = (count + 4) / 5;
  MY_KEY *keys, *unique;
  MY_LENGTH* lengths;
  int *found, wrong = 0;
  cudaMallocManaged(&keys, count * sizeof(MY_KEY));
  cudaMallocManaged(&unique, count * sizeof(MY_KEY));
  cudaMallocManaged(&lengths, count * sizeof(MY_LENGTH));
  cudaMallocManaged(&found, sizeof(int));
  for (int i = 0; i < count; ++i) keys[i] = MY_KEY(i / 5 % 100);
  cudaError_t error = cub::DeviceRunLengthEncode::Encode(keys, unique, lengths, found, count, env);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error != cudaSuccess) return std::printf("%s\n", cudaGetErrorName(error)), 1;
  for (int r = 0; r < runs; ++r)
    wrong += !(unique[r] == MY_KEY(r % 100)) || lengths[r] != (r + 1 < runs ? 5 : count - 5 * r);
  std::printf("%d runs of %d, %d of them wrong\n", *found, runs, wrong);
  return *found != runs || wrong != 0;
}
