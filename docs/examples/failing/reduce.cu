// Adds up what five functions say of each float with cub::DeviceReduce. With MY_ITEMS, doubles by a policy.

#include <cub/device/device_reduce.cuh>

#include <cuda/std/functional>

#include <cstdio>

#ifdef MY_ITEMS
using item = double;
using sums = double;
struct selector
{
  __host__ __device__ constexpr cub::ReducePolicy operator()(cuda::compute_capability) const
  {
    const cub::ReducePassPolicy pass{448, MY_ITEMS, MY_VECTOR, cub::BLOCK_REDUCE_WARP_REDUCTIONS, cub::LOAD_DEFAULT};
    return {pass, pass};
  }
};
#else
using item = float;
struct sums
{
  float first, second, third, fourth, fifth;
  __host__ __device__ explicit operator double() const { return first; }
};
struct powers
{
  __host__ __device__ sums operator()(float x) const { return {x, x * x, x * x * x, 1 / x, 1 / (x * x)}; }
};
struct add
{
  __host__ __device__ sums operator()(const sums& a, const sums& b) const
  {
    return {a.first + b.first, a.second + b.second, a.third + b.third, a.fourth + b.fourth, a.fifth + b.fifth};
  }
};
#endif

int main()
{
  constexpr int count = 1 << 20;
  item* items;
  sums* sum;
  cudaMallocManaged(&items, count * sizeof(item));
  cudaMallocManaged(&sum, sizeof(sums));
  for (int i = 0; i < count; ++i) items[i] = 1;
#ifdef MY_ITEMS
  const cuda::std::execution::env env{cuda::execution::tune(selector{})};
  cudaError_t error = cub::DeviceReduce::Reduce(items, sum, count, cuda::std::plus<>{}, 0., env);
#else
  void* storage = nullptr;
  std::size_t bytes = 0;
  cub::DeviceReduce::TransformReduce(storage, bytes, items, sum, count, add{}, powers{}, sums{});
  cudaMalloc(&storage, bytes);
  cudaError_t error = cub::DeviceReduce::TransformReduce(storage, bytes, items, sum, count, add{}, powers{}, sums{});
#endif
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  if (error != cudaSuccess) return std::printf("%s\n", cudaGetErrorName(error)), 1;
  std::printf("%.0f of %d\n", double(*sum), count);
  return double(*sum) != count;
}
