template <typename T>
struct less_than_t
{
  T bound;

  __device__ bool operator()(const T& value) const
  {
    return value < bound;
  }
};
