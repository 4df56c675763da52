// Contents of top-k selections, and sets of what they select.

namespace policygen_inputs
{
template <class T, class Key>
struct write_of_key
{
  T* to;
  const Key* keys;

  __device__ void operator()(long long at) const
  {
    unsigned long long name = 0;
    for (int byte = 0; byte < static_cast<int>(sizeof(Key)); ++byte)
    {
      name = mixed(name ^ reinterpret_cast<const unsigned char*>(keys + at)[byte]);
    }
    to[at] = static_cast<T>(name);
  }
};

// Values that keys tell, so that it is known which value belongs to which key.
template <class T, class Key>
cudaError_t of_keys(T* to, long long count, const Key* keys)
{
  return each(count, write_of_key<T, Key>{to, keys});
}

// In which order the benchmark names its patterns.
enum class pattern
{
  random,
  quantized_random,
  relu_quantized,
  tie_heavy,
  pivot_tie
};

struct write_pattern
{
  float* to;
  const int* sizes;
  pattern kind;
  long long room;
  long long larger;
  unsigned long long seed;

  // After a normal distribution.
  __device__ float normal(long long at) const
  {
    const double radius = sqrt(-2 * log(1 - share(seed, 2 * at)));
    return static_cast<float>(radius * cos(6.283185307179586 * share(seed, 2 * at + 1)));
  }
  __device__ static float quantized(float value)
  {
    return rintf(value * 32.0f) / 32.0f;
  }
  __device__ float at_place(long long at) const
  {
    const long long place = at % room;
    switch (kind)
    {
      case pattern::random:
        return normal(at);
      case pattern::quantized_random:
        return quantized(normal(at));
      case pattern::relu_quantized:
        return quantized(fmaxf(normal(at), 0.0f));
      case pattern::tie_heavy:
        return static_cast<float>(place % 64) / 64.0f;
      default:
        return place >= sizes[at / room] - larger ? 2.0f : 1.0f;
    }
  }
  __device__ void operator()(long long at) const
  {
    to[at] = at_place(at);
  }
};

// Keys of segments with room for `room` each, of which `selected` will be selected; of the last pattern the last few
// of a segment are larger than all others.
inline cudaError_t patterned(
  float* to, long long count, const int* sizes, long long kind, long long room, long long selected)
{
  const long long fewer  = selected / 4 < room / 8 ? selected / 4 : room / 8;
  const long long larger = fewer < 1 ? 1 : fewer;
  return each(count, write_pattern{to, sizes, static_cast<pattern>(kind), room, larger, seed});
}

template <class T, class U>
struct add_to_group
{
  const T* values;
  const U* besides;
  long long size;
  unsigned long long* sums;

  template <class V>
  __device__ static unsigned long long name(unsigned long long before, const V& value)
  {
    for (int byte = 0; byte < static_cast<int>(sizeof(V)); ++byte)
    {
      before = mixed(before ^ reinterpret_cast<const unsigned char*>(&value)[byte]);
    }
    return before;
  }
  __device__ void operator()(long long at) const
  {
    const unsigned long long own = name(0, values[at]);
    atomicAdd(sums + at / size, besides ? name(own, besides[at]) : own);
  }
};

// How many sets of `size` elements that stand together differ, and where the first of them begins; what stands beside
// an element belongs to it.
template <class T, class U>
long long compare_groups(
  const T* got,
  const T* expected,
  const U* beside_got,
  const U* beside_expected,
  long long count,
  long long size,
  long long* first)
{
  const long long groups = size > 0 ? (count + size - 1) / size : 0;
  scratch sums(2 * sizeof(unsigned long long) * (groups + 1));
  auto* const left  = static_cast<unsigned long long*>(sums.memory);
  auto* const right = left + groups;
  cudaError_t error = sums.error;
  error             = error ? error : cudaMemset(left, 0, 2 * sizeof(unsigned long long) * groups);
  error             = error ? error : each(count, add_to_group<T, U>{got, beside_got, size, left});
  error             = error ? error : each(count, add_to_group<T, U>{expected, beside_expected, size, right});
  if (error)
  {
    return -1;
  }
  const long long differ = compare(left, right, groups, 0.0, first);
  *first                 = differ > 0 ? *first * size : -1;
  return differ;
}
} // namespace policygen_inputs
