// Operators of benchmarks, besides those of the library; nothing is included for them.
namespace policygen_run
{
// The order of complex numbers is that of their magnitudes, then of their angles; of all else, that of `<`.
struct ascending
{
  template <class T>
  __host__ __device__ auto ordered(const T& left, const T& right, int) const -> decltype(left.real() < right.real())
  {
    using part          = decltype(left.real());
    const part infinity = ::cuda::std::numeric_limits<part>::infinity();
    part of_left        = abs(left);
    part of_right       = abs(right);
    if (of_left == infinity || of_right == infinity)
    {
      const part half{0.5};
      of_left  = abs(left * half);
      of_right = abs(right * half);
    }
    return of_left == of_right ? arg(left) < arg(right) : of_left < of_right;
  }
  template <class T>
  __host__ __device__ bool ordered(const T& left, const T& right, long) const
  {
    return left < right;
  }
  template <class T>
  __host__ __device__ bool operator()(const T& left, const T& right) const
  {
    return ordered(left, right, 0);
  }
};

struct smaller_one
{
  template <class T>
  __host__ __device__ T operator()(const T& left, const T& right) const
  {
    return ascending{}(right, left) ? right : left;
  }
};

struct larger_one
{
  template <class T>
  __host__ __device__ T operator()(const T& left, const T& right) const
  {
    return ascending{}(left, right) ? right : left;
  }
};

// The operator of a user in benchmarks.
using user_op = larger_one;

struct squared
{
  template <class T>
  __host__ __device__ T operator()(const T& value) const
  {
    return value * value;
  }
};
} // namespace policygen_run
