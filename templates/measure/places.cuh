// Buffers of many sizes that lie one behind the other.

namespace policygen_inputs
{
template <class T>
struct write_bytes
{
  T* to;
  long long total;
  long long element;
  long long* buffers;

  __device__ void operator()(long long at, long long before, long long own) const
  {
    if (before < total)
    {
      to[at] = static_cast<T>((before + own < total ? own : total - before) * element);
      if (before + own >= total)
      {
        *buffers = at + 1;
      }
    }
  }
};

// Sizes in bytes of buffers of between `least` and `most` elements; the last one is cut. Sets how many.
template <class T>
cudaError_t uniform_bytes(
  T* to, long long count, long long total, long long least, long long most, long long element, long long& buffers)
{
  scratch found(sizeof(long long));
  auto* const device = static_cast<long long*>(found.memory);
  cudaError_t error  = found.error;
  error              = error ? error : cudaMemset(device, 0, sizeof(long long));
  error = error ? error : walk(count, uniform_size{seed, least, most}, write_bytes<T>{to, total, element, device});
  error = error ? error : cudaMemcpy(&buffers, device, sizeof(long long), cudaMemcpyDeviceToHost);
  return error ? error : buffers == 0 ? cudaErrorInvalidValue : cudaSuccess;
}

// A permutation of 0 … count - 1: rounds of a cipher on the next power of four, until the value is one of them.
struct shuffle
{
  unsigned long long seed;
  long long count;
  int bits; // Of each half.

  __device__ long long operator()(long long at) const
  {
    const unsigned long long mask = (1ull << bits) - 1;
    auto value                    = static_cast<unsigned long long>(at);
    do
    {
      unsigned long long left  = value >> bits;
      unsigned long long right = value & mask;
      for (int round = 0; round < 4; ++round)
      {
        const unsigned long long next = left ^ (drawn(seed + round, static_cast<long long>(right)) & mask);
        left                          = right;
        right                         = next;
      }
      value = left << bits | right;
    } while (value >= static_cast<unsigned long long>(count));
    return static_cast<long long>(value);
  }
};

struct in_order
{
  __device__ long long operator()(long long at) const
  {
    return at;
  }
};

template <class T, class Order>
struct size_in_order
{
  const T* bytes;
  Order order;

  __device__ long long operator()(long long at) const
  {
    return static_cast<long long>(bytes[order(at)]);
  }
};

template <class P, class Order>
struct write_place
{
  P** to;
  P* memory;
  Order order;

  __device__ void operator()(long long at, long long before, long long) const
  {
    to[order(at)] = reinterpret_cast<P*>(reinterpret_cast<char*>(memory) + before);
  }
};

// Where buffers of these sizes begin that lie one behind the other, in their order or in any.
template <class P, class T>
cudaError_t places(P** to, P* memory, const T* bytes, long long buffers, bool shuffled)
{
  if (!shuffled)
  {
    return walk(buffers, size_in_order<T, in_order>{bytes, {}}, write_place<P, in_order>{to, memory, {}});
  }
  int bits = 1;
  while ((1ll << (2 * bits)) < buffers)
  {
    ++bits;
  }
  const shuffle order{seed, buffers, bits};
  return walk(buffers, size_in_order<T, shuffle>{bytes, order}, write_place<P, shuffle>{to, memory, order});
}
} // namespace policygen_inputs
