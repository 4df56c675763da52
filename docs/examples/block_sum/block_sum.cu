// The sum of each tile of an array, with CUB's algorithms for blocks: which ones, and how many elements for a thread?
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>

#include <cuda_runtime.h>

template <int Threads, int Items, cub::BlockReduceAlgorithm Reduce, cub::BlockLoadAlgorithm Load>
__global__ void __launch_bounds__(Threads) block_sum(const int* in, int* sums, int tiles)
{
  using block_load   = cub::BlockLoad<int, Threads, Items, Load>;
  using block_reduce = cub::BlockReduce<int, Threads, Reduce>;
  __shared__ union
  {
    typename block_load::TempStorage load;
    typename block_reduce::TempStorage reduce;
  } storage;

  // A tile has 8,192 elements, whatever a block takes at once.
  constexpr int tile = 8192;
  for (int at = static_cast<int>(blockIdx.x); at < tiles; at += static_cast<int>(gridDim.x))
  {
    int sum = 0;
    for (int first = 0; first < tile; first += Threads * Items)
    {
      int items[Items];
      block_load(storage.load).Load(in + static_cast<long long>(at) * tile + first, items);
#pragma unroll
      for (int item = 0; item < Items; ++item)
      {
        sum += items[item];
      }
      __syncthreads();
    }
    const int total = block_reduce(storage.reduce).Sum(sum);
    if (threadIdx.x == 0)
    {
      sums[at] = total;
    }
    __syncthreads();
  }
}

__global__ void sum_by_one_thread(const int* in, int* sums, int tiles)
{
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (at < tiles)
  {
    int sum = 0;
    for (int item = 0; item < 8192; ++item)
    {
      sum += in[static_cast<long long>(at) * 8192 + item];
    }
    sums[at] = sum;
  }
}

inline void reference(const int* in, int* sums, long long tiles, cudaStream_t stream)
{
  sum_by_one_thread<<<static_cast<unsigned>((tiles + 127) / 128), 128, 0, stream>>>(
    in, sums, static_cast<int>(tiles));
}
