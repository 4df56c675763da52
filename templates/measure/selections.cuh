// Elements and flags of which a share is selected, and how many that are.
namespace policygen_inputs
{
template <class F>
__global__ void count_kernel(long long count, F holds, unsigned long long* found)
{
  const long long step     = static_cast<long long>(gridDim.x) * threads;
  unsigned long long local = 0;
  for (long long at = static_cast<long long>(blockIdx.x) * threads + threadIdx.x; at < count; at += step)
  {
    local += holds(at);
  }
  if (local)
  {
    atomicAdd(found, local);
  }
}

template <class F>
cudaError_t how_many(long long count, F holds, long long& found)
{
  unsigned long long* counter = nullptr;
  if (const cudaError_t error = cudaMalloc(&counter, sizeof(*counter)))
  {
    return error;
  }
  cudaError_t error = cudaMemset(counter, 0, sizeof(*counter));
  if (error == cudaSuccess && count > 0)
  {
    const long long blocks = (count + threads - 1) / threads;
    count_kernel<<<static_cast<unsigned>(blocks < 4096 ? blocks : 4096), threads>>>(count, holds, counter);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess)
  {
    error = cudaMemcpy(&found, counter, sizeof(found), cudaMemcpyDeviceToHost);
  }
  const cudaError_t freed = cudaFree(counter);
  return error ? error : freed;
}

struct write_flag
{
  bool* to;
  long long thousandths;
  unsigned long long seed;

  __device__ void operator()(long long at) const
  {
    to[at] = share(seed, at) * 1000 < static_cast<double>(thousandths);
  }
};

struct is_set
{
  const bool* values;

  __device__ bool operator()(long long at) const
  {
    return values[at];
  }
};

template <class T>
struct is_below
{
  const T* values;
  T bound;

  __device__ bool operator()(long long at) const
  {
    return values[at] < bound;
  }
};

// Each is set with a probability, in thousandths.
inline cudaError_t flagged(bool* to, long long count, long long thousandths)
{
  return each(count, write_flag{to, thousandths, seed});
}

// The same, and how many are set.
inline cudaError_t flagged(bool* to, long long count, long long thousandths, long long& set)
{
  const cudaError_t error = flagged(to, count, thousandths);
  return error ? error : how_many(count, is_set{to}, set);
}

// Uniform over a type's values, and how many are below one of them.
template <class T>
cudaError_t uniform_below(T* to, long long count, T bound, long long& below)
{
  const cudaError_t error = uniform(to, count);
  return error ? error : how_many(count, is_below<T>{to, bound}, below);
}

template <class T>
struct write_split
{
  T* to;
  long long first;

  __device__ void operator()(long long at) const
  {
    to[at] = static_cast<T>(at < first ? 0 : 1);
  }
};

// Zeros before a place, ones from there on.
template <class T>
cudaError_t split(T* to, long long count, long long first)
{
  return each(count, write_split<T>{to, first});
}
} // namespace policygen_inputs
