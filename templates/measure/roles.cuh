// What bindings name roles by: what an operator makes of two elements, and types of offsets.
namespace policygen_run
{
template <class Op, class T>
using accumulator =
  ::cuda::std::decay_t<decltype(::cuda::std::declval<Op&>()(::cuda::std::declval<T>(), ::cuda::std::declval<T>()))>;
template <class T>
using offset = ::cuda::std::conditional_t<(sizeof(T) <= 4), ::cuda::std::uint32_t, unsigned long long>;

// What selections and partitions ask of an element.
template <class T>
struct less_than
{
  T bound;

  __host__ __device__ bool operator()(const T& value) const
  {
    return value < bound;
  }
};

// Where a share of the way from a type's least value to its largest is, in thousandths.
template <class T>
T quantile(long long share)
{
  using limits = ::cuda::std::numeric_limits<T>;
  if (share >= 1000)
  {
    return (limits::max)();
  }
  const double at = static_cast<double>(share) / 1000;
  return static_cast<T>(
    (1 - at) * static_cast<double>(limits::lowest()) + at * static_cast<double>((limits::max)()));
}
} // namespace policygen_run
