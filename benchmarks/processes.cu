// How far processes that run the same code are from each other: fixtures/measured/processes.csv.
//
//     nvcc -O3 -std=c++20 -arch=native benchmarks/processes.cu -o processes
//     for i in $(seq 51); do for a in r f s k x; do printf $a; ./processes $a; done; done
//
// Prints the median time of an algorithm for 2^16, 2^20, 2^24 and 2^28 elements. The L2 cache is
// overwritten before each sample; the GPU is busy with that while the sample is enqueued.

#include <cub/cub.cuh>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace std::chrono;

constexpr size_t cache = 256u << 20;

struct below
{
  __device__ bool operator()(int value) const { return value < 0x40000000; }
};

template <class Run>
double median_seconds(Run run, void* scratch)
{
  std::vector<float> samples;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  run();
  cudaDeviceSynchronize();
  const auto start = steady_clock::now();
  while (samples.size() < 30 || steady_clock::now() - start < milliseconds(250))
  {
    cudaMemsetAsync(scratch, 0, cache);
    cudaEventRecord(begin);
    run();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float elapsed;
    cudaEventElapsedTime(&elapsed, begin, end);
    samples.push_back(elapsed);
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2] * 1e-3;
}

template <class T>
__global__ void fill(T* out, size_t count)
{
  for (size_t i = blockIdx.x * 256 + threadIdx.x; i < count; i += 1024 * 256)
  {
    unsigned x = i * 2654435761u;
    x ^= x >> 16;
    x *= 0x85ebca6b;
    x ^= x >> 13;
    out[i] = static_cast<T>(x & 0x7fffffff);
  }
}

template <class T, class Algorithm>
void sweep(Algorithm algorithm)
{
  void* scratch;
  cudaMalloc(&scratch, cache);
  for (int exponent : {16, 20, 24, 28})
  {
    const size_t count = size_t{1} << exponent;
    size_t bytes       = 0;
    T *in, *out;
    int* selected;
    void* storage = nullptr;
    cudaMalloc(&in, count * sizeof(T));
    cudaMalloc(&out, count * sizeof(T));
    cudaMalloc(&selected, sizeof(int));
    fill<<<1024, 256>>>(in, count);
    const auto run = [&] { algorithm(storage, bytes, in, out, selected, static_cast<int>(count)); };
    run();
    cudaMalloc(&storage, bytes);
    printf(",%.6g", median_seconds(run, scratch));
    cudaFree(storage);
    cudaFree(in);
    cudaFree(out);
    cudaFree(selected);
  }
  puts("");
}

int main(int, char** argv)
{
  const auto reduce = [](void* t, size_t& b, auto* in, auto* out, int*, int n) {
    cub::DeviceReduce::Sum(t, b, in, out, n);
  };
  const auto select = [](void* t, size_t& b, auto* in, auto* out, int* selected, int n) {
    cub::DeviceSelect::If(t, b, in, out, selected, n, below{});
  };
  const auto sort = [](void* t, size_t& b, auto* in, auto* out, int*, int n) {
    cub::DeviceRadixSort::SortKeys(t, b, in, out, n);
  };
  const auto scan = [](void* t, size_t& b, auto* in, auto* out, int*, int n) {
    cub::DeviceScan::ExclusiveSum(t, b, in, out, n);
  };
  switch (*argv[1])
  {
    case 'r': sweep<int>(reduce); break;
    case 'f': sweep<float>(reduce); break;
    case 's': sweep<int>(select); break;
    case 'k': sweep<unsigned char>(sort); break;
    case 'x': sweep<int>(scan); break;
  }
  return cudaGetLastError();
}
