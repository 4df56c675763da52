// Contents whose parts depend on what stands before them: segments and sorted halves.
#include <cmath>
#include <vector>

namespace policygen_inputs
{
// How many threads walk a buffer, each over a part of it that stands together.
constexpr long long walkers = 1 << 16;

// Memory of the GPU for a while.
struct scratch
{
  void* memory = nullptr;
  cudaError_t error;

  explicit scratch(size_t bytes)
      : error(cudaMalloc(&memory, bytes))
  {}
  scratch(const scratch&)            = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch()
  {
    cudaFree(memory);
  }
};

template <class Size>
struct add_sizes
{
  long long* sums;
  long long count;
  long long length;
  Size size;

  __device__ void operator()(long long walker) const
  {
    const long long from = walker * length;
    const long long to   = from + length < count ? from + length : count;
    long long sum        = 0;
    for (long long at = from; at < to; ++at)
    {
      sum += size(at);
    }
    sums[walker] = sum;
  }
};

template <class Size, class Write>
struct write_sizes
{
  const long long* sums;
  long long count;
  long long length;
  Size size;
  Write write;

  __device__ void operator()(long long walker) const
  {
    const long long from = walker * length;
    const long long to   = from + length < count ? from + length : count;
    long long before     = sums[walker];
    for (long long at = from; at < to; ++at)
    {
      const long long own = size(at);
      write(at, before, own);
      before += own;
    }
  }
};

// Calls write(at, sum of the sizes before, size) for each element; `total` is the sum of all.
template <class Size, class Write>
cudaError_t walk(long long count, Size size, Write write, long long* total = nullptr)
{
  const long long length = (count + walkers - 1) / walkers;
  const long long parts  = length ? (count + length - 1) / length : 0;
  scratch sums(sizeof(long long) * walkers);
  std::vector<long long> host(walkers);
  auto* const device = static_cast<long long*>(sums.memory);
  cudaError_t error  = sums.error;
  error              = error ? error : each(parts, add_sizes<Size>{device, count, length, size});
  error = error ? error : cudaMemcpy(host.data(), device, sizeof(long long) * parts, cudaMemcpyDeviceToHost);
  long long sum = 0;
  for (long long part = 0; part < parts; ++part)
  {
    const long long own = host[part];
    host[part]          = sum;
    sum += own;
  }
  if (total)
  {
    *total = sum;
  }
  error = error ? error : cudaMemcpy(device, host.data(), sizeof(long long) * parts, cudaMemcpyHostToDevice);
  error = error ? error : each(parts, write_sizes<Size, Write>{device, count, length, size, write});
  return error ? error : cudaDeviceSynchronize();
}

struct write_nothing
{
  __device__ void operator()(long long, long long, long long) const {}
};

// Whether an element of sorted values goes to the first half, as long as that has room.
struct is_first
{
  unsigned long long seed;
  int draws;
  bool negated;

  __device__ long long operator()(long long at) const
  {
    unsigned long long bits = ~0ull;
    for (int draw = 0; draw < draws; ++draw)
    {
      bits &= drawn(seed + 1000 * draw, at);
    }
    return ((bits >> 63) == 0) != negated;
  }
};

template <class T>
struct write_half
{
  T* to;
  long long all;
  long long room;
  bool second;
  unsigned long long seed;

  __device__ void operator()(long long at, long long before, long long own) const
  {
    const bool to_first = own != 0 && before < room;
    if (to_first == second)
    {
      return;
    }
    const double place = (static_cast<double>(at) + share(seed, at)) / static_cast<double>(all);
    using limits       = ::cuda::std::numeric_limits<T>;
    to[to_first ? before : at - (before < room ? before : room)] =
      between(place < 1 ? place : 1 - 0x1p-53, (limits::min)(), (limits::max)());
  }
};

// One of two sorted halves of `all` values spread over the type; the less entropy, the longer runs come from one half.
template <class T>
cudaError_t sorted_half(T* to, long long all, long long entropy, bool second)
{
  const unsigned long long own = 4711;
  const long long room         = all / 2;
  is_first first{own + 1, joined(entropy) + 1, false};
  long long firsts = 0;
  if (const cudaError_t error = walk(all, first, write_nothing{}, &firsts))
  {
    return error;
  }
  first.negated = firsts < room;
  return walk(all, first, write_half<T>{to, all, room, second, own});
}

struct uniform_size
{
  unsigned long long seed;
  long long least;
  long long most;

  __device__ long long operator()(long long at) const
  {
    return least + static_cast<long long>(drawn(seed, at) % static_cast<unsigned long long>(most - least + 1));
  }
};

template <class T>
struct write_offset
{
  T* to;
  long long total;
  long long* segments;

  __device__ void operator()(long long at, long long before, long long own) const
  {
    if (before < total)
    {
      to[at] = static_cast<T>(before);
      if (before + own >= total)
      {
        to[at + 1] = static_cast<T>(total);
        *segments  = at + 1;
      }
    }
  }
};

// Where segments begin whose sizes are uniform between two values, and the end; the last one is cut. Sets how many.
template <class T>
cudaError_t uniform_offsets(
  T* to, long long count, long long total, long long least, long long most, long long& segments)
{
  scratch found(sizeof(long long));
  auto* const device = static_cast<long long*>(found.memory);
  cudaError_t error  = found.error;
  error              = error ? error : cudaMemset(device, 0, sizeof(long long));
  error = error ? error : walk(count - 1, uniform_size{seed, least, most}, write_offset<T>{to, total, device});
  error = error ? error : cudaMemcpy(&segments, device, sizeof(long long), cudaMemcpyDeviceToHost);
  return error ? error : segments == 0 ? cudaErrorInvalidValue : cudaSuccess;
}

// Sizes after a logarithmic normal distribution of mean 3 and deviation 1.2, scaled to `total`, as offsets.
template <class T>
cudaError_t power_law_offsets(T* to, long long segments, long long total)
{
  std::vector<double> weights(segments);
  double sum = 0;
  for (long long at = 0; at < segments; ++at)
  {
    const double radius = std::sqrt(-2 * std::log(1 - share(seed, 2 * at)));
    weights[at]         = std::exp(3.0 + 1.2 * radius * std::cos(6.283185307179586 * share(seed, 2 * at + 1)));
    sum += weights[at];
  }
  std::vector<T> offsets(segments + 1);
  long long used = 0;
  for (long long at = 0; at < segments; ++at)
  {
    weights[at] = std::floor(weights[at] * static_cast<double>(total) / sum);
    used += static_cast<long long>(weights[at]);
  }
  long long left = total - used; // What rounding lost: one for each of the first segments.
  long long next = 0;
  for (long long at = 0; at < segments; ++at)
  {
    offsets[at] = static_cast<T>(next);
    next += static_cast<long long>(weights[at]) + (at < left ? 1 : 0);
  }
  offsets[segments] = static_cast<T>(total);
  return cudaMemcpy(to, offsets.data(), sizeof(T) * (segments + 1), cudaMemcpyHostToDevice);
}

template <class T>
struct write_step
{
  T* to;
  long long most;
  long long size;
  long long wobble;

  __device__ void operator()(long long at) const
  {
    const long long offset = at * size + (at % 2 ? wobble : 0);
    to[at]                 = static_cast<T>(offset < most ? offset : most);
  }
};

// Offsets of segments of one size; with `wobble`, every other one is longer by so much.
template <class T>
cudaError_t step_offsets(T* to, long long count, long long most, long long size, long long wobble)
{
  return each(count, write_step<T>{to, most, size, wobble});
}
} // namespace policygen_inputs
