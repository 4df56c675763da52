// What contents of buffers use of the CUDA runtime, on the host: kernels are loops, memory is memory.
#pragma once
#include <cmath>
#include <cstdlib>
#include <cstring>
#define __host__
#define __device__
#define __global__

using std::isnan;
using cudaError_t                                = int;
constexpr cudaError_t cudaSuccess               = 0;
constexpr cudaError_t cudaErrorInvalidValue     = 1;
constexpr cudaError_t cudaErrorMemoryAllocation = 2;
enum cudaMemcpyKind
{
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost
};

template <class T>
cudaError_t cudaMalloc(T** to, size_t bytes)
{
  *to = static_cast<T*>(std::malloc(bytes));
  return *to ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void* memory)
{
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind)
{
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* to, int value, size_t bytes)
{
  std::memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaGetLastError()
{
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize()
{
  return cudaSuccess;
}
template <class T>
T atomicAdd(T* to, T value)
{
  const T old = *to;
  *to += value;
  return old;
}
template <class T>
T atomicMin(T* to, T value)
{
  const T old = *to;
  *to         = value < old ? value : old;
  return old;
}
