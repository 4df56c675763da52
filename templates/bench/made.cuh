// An element is made of its place and of 64 bits, which are mixed of it as SplitMix does.
template <typename Generator>
struct made_t
{
  __device__ auto operator()(long long index) const
  {
    unsigned long long bits = 42 + (static_cast<unsigned long long>(index) + 1) * 0x9E3779B97F4A7C15ull;
    bits                    = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
    bits                    = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
    return Generator{}(index, bits ^ (bits >> 31));
  }
};
