// Terms of sums that are exact in any order, and results of two parts.
#include <cmath>

namespace policygen_inputs
{
// The part of a number that its precision is of.
template <class T>
struct part_of
{
  using type = T;
};
template <class T>
struct part_of<::cuda::std::complex<T>>
{
  using type = T;
};

template <class T>
struct write_term
{
  T* to;
  double density;
  bool positive;
  unsigned long long seed;

  __device__ void operator()(long long at) const
  {
    const float sign  = positive || drawn(seed + 1, at) % 2 ? 1.0f : -1.0f;
    const float value = share(seed, at) < density ? sign : 0.0f;
    to[at]            = static_cast<T>(static_cast<typename part_of<T>::type>(value));
  }
};

// How large a whole number may become in a type of floats.
template <class T>
double exact_limit()
{
  return std::ldexp(1.0, ::cuda::std::numeric_limits<typename part_of<T>::type>::digits);
}

// Terms of sums that are exact in any order: all of a type of integers; -1, 0 and 1 so rarely that no sum of them is
// rounded (six deviations).
template <class T>
cudaError_t terms(T* to, long long count)
{
  if constexpr (is_whole<T>)
  {
    return uniform(to, count);
  }
  else
  {
    const double deviation = exact_limit<T>() / 6;
    const double density   = deviation * deviation / static_cast<double>(count);
    return each(count, write_term<T>{to, density < 0.75 ? density : 0.75, false, seed});
  }
}

// The same for sums of squares: half of what fits.
template <class T>
cudaError_t positive_terms(T* to, long long count)
{
  if constexpr (is_whole<T>)
  {
    return uniform(to, count);
  }
  else
  {
    const double density = exact_limit<T>() / 2 / static_cast<double>(count);
    return each(count, write_term<T>{to, density < 0.75 ? density : 0.75, true, seed});
  }
}

// The parts of a pair, one by one: bytes between them are anything.
template <class P>
__device__ auto first_part(const P& pair) -> decltype(pair.key)
{
  return pair.key;
}
template <class P>
__device__ auto first_part(const P& pair) -> decltype(pair.first)
{
  return pair.first;
}
template <class P>
__device__ auto second_part(const P& pair) -> decltype(pair.value)
{
  return pair.value;
}
template <class P>
__device__ auto second_part(const P& pair) -> decltype(pair.second)
{
  return pair.second;
}

template <class P>
struct parts_differ
{
  const P* got;
  const P* expected;
  difference* found;

  template <class T>
  __device__ static bool same(const T& left, const T& right)
  {
    return differs<T>{&left, &right, 0, nullptr}.same(0);
  }
  __device__ void operator()(long long at) const
  {
    if (!same(first_part(got[at]), first_part(expected[at])) || !same(second_part(got[at]), second_part(expected[at])))
    {
      atomicAdd(&found->count, 1ull);
      atomicMin(&found->first, static_cast<unsigned long long>(at));
    }
  }
};

template <template <class, class> class P, class Left, class Right>
long long
compare(const P<Left, Right>* got, const P<Left, Right>* expected, long long count, double, long long* first)
{
  return told(
    [=](difference* found) { return each(count, parts_differ<P<Left, Right>>{got, expected, found}); }, first);
}
} // namespace policygen_inputs
