// Keys that stand in runs: of each run the length is drawn, and the number is its key.
#include <vector>

namespace policygen_inputs
{
// Runs in parts of about this many elements; a part is one thread's.
constexpr long long part_elements = 4096;

struct run_lengths
{
  unsigned long long seed;
  long long least;
  long long most;

  __host__ __device__ long long operator()(long long run) const
  {
    return least + static_cast<long long>(drawn(seed, run) % static_cast<unsigned long long>(most - least + 1));
  }
};

struct add_part
{
  run_lengths lengths;
  long long runs;
  long long* sums;

  __device__ void operator()(long long part) const
  {
    long long sum = 0;
    for (long long run = part * runs; run < (part + 1) * runs; ++run)
    {
      sum += lengths(run);
    }
    sums[part] = sum;
  }
};

template <class T>
struct write_part
{
  T* to;
  long long count;
  run_lengths lengths;
  long long runs;
  const long long* starts;
  long long parts;

  __device__ void operator()(long long part) const
  {
    long long at = starts[part];
    // The last part goes on to the end.
    for (long long run = part * runs; at < count && (part + 1 == parts || run < (part + 1) * runs); ++run)
    {
      const long long end = at + lengths(run);
      for (; at < end && at < count; ++at)
      {
        to[at] = static_cast<T>(run);
      }
    }
  }
};

// Runs of equal keys whose lengths are uniform between two, of which the larger is not 0.
template <class T>
cudaError_t key_segments(T* to, long long count, long long least, long long most)
{
  const run_lengths lengths{seed, least, most};
  const long long twice = least + most;
  const long long runs  = 2 * part_elements / twice > 0 ? 2 * part_elements / twice : 1;
  const long long parts = 2 * count / (twice * runs) + 1;
  long long* starts     = nullptr;
  if (const cudaError_t error = cudaMalloc(&starts, parts * sizeof(long long)))
  {
    return error;
  }
  std::vector<long long> sums(static_cast<size_t>(parts));
  cudaError_t error = each(parts, add_part{lengths, runs, starts});
  if (error == cudaSuccess)
  {
    error = cudaMemcpy(sums.data(), starts, parts * sizeof(long long), cudaMemcpyDeviceToHost);
  }
  long long start = 0;
  for (long long& sum : sums)
  {
    start += sum;
    sum = start - sum;
  }
  if (error == cudaSuccess)
  {
    error = cudaMemcpy(starts, sums.data(), parts * sizeof(long long), cudaMemcpyHostToDevice);
  }
  if (error == cudaSuccess)
  {
    error = each(parts, write_part<T>{to, count, lengths, runs, starts, parts});
  }
  const cudaError_t freed = cudaFree(starts);
  return error ? error : freed;
}
} // namespace policygen_inputs
