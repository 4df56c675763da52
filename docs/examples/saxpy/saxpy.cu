// y = a * x + y, in two ways: each thread its own elements, or a grid that strides over all of them.
#include <cuda_runtime.h>

template <int Threads, int Items>
__global__ void blocked(const float* x, float* y, float a, long long elements)
{
  long long at = static_cast<long long>(blockIdx.x) * Threads * Items + threadIdx.x;
#pragma unroll
  for (int item = 0; item < Items; ++item, at += Threads)
  {
    if (at < elements)
    {
      y[at] = a * x[at] + y[at];
    }
  }
}

template <int Threads, int Items>
__global__ void strided(const float* x, float* y, float a, long long elements)
{
  const long long step = static_cast<long long>(gridDim.x) * Threads;
#pragma unroll Items
  for (long long at = static_cast<long long>(blockIdx.x) * Threads + threadIdx.x; at < elements; at += step)
  {
    y[at] = a * x[at] + y[at];
  }
}

// What is right, as slow as it may be.
__global__ void one_by_one(const float* x, float* y, float a, long long elements)
{
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < elements)
  {
    y[at] = fmaf(a, x[at], y[at]);
  }
}

inline void reference(const float* x, float* y, float a, long long elements, cudaStream_t stream)
{
  one_by_one<<<static_cast<unsigned>((elements + 255) / 256), 256, 0, stream>>>(x, y, a, elements);
}
