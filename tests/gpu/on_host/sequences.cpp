// Prints contents of buffers as JSON: a name and its values.
#include "contents.h"

#include <cstdio>
#include <string>
#include <utility>

using namespace policygen_inputs;

template <class T>
void print(const char* name, const std::vector<T>& values, size_t count)
{
  std::printf("%s\"%s\": [", std::strcmp(name, "offsets") == 0 ? "{" : ",\n", name);
  for (size_t at = 0; at < count; ++at)
  {
    std::printf("%s%.17g", at ? ", " : "", static_cast<double>(values[at]));
  }
  std::printf("]");
}
template <class T>
void print(const char* name, const std::vector<T>& values)
{
  print(name, values, values.size());
}

int failures = 0;
void must(cudaError_t error)
{
  failures += error != cudaSuccess;
}

template <class Left, class Right>
struct of_two
{
  Left key;
  Right value;
};

int main()
{
  seed = 43;
  std::vector<int> offsets(100000 / 64 + 3);
  long long segments = 0;
  must(uniform_offsets(offsets.data(), static_cast<long long>(offsets.size()), 100000, 64, 128, segments));
  print("offsets", offsets, segments + 1);
  std::vector<int> few(3);
  print("too_few", std::vector<int>{uniform_offsets(few.data(), 3, 100000, 64, 128, segments)});

  std::vector<int> power(4097);
  must(power_law_offsets(power.data(), 4096, 1 << 20));
  print("power", power);

  std::vector<long long> fixed(6), wobbly(6);
  must(step_offsets(fixed.data(), 6, 250, 51, 0));
  must(step_offsets(wobbly.data(), 6, 250, 51, 1));
  print("fixed", fixed);
  print("wobbly", wobbly);

  for (const auto& [name, entropy] : {std::pair{"even", 1000ll}, std::pair{"uneven", 201ll}})
  {
    std::vector<short> first(5000), second(5000);
    must(sorted_half(first.data(), 10000, entropy, false));
    must(sorted_half(second.data(), 10000, entropy, true));
    print((std::string(name) + "_first").c_str(), first);
    print((std::string(name) + "_second").c_str(), second);
  }

  std::vector<int> bytes(4000);
  long long buffers = 0;
  must(uniform_bytes(bytes.data(), 4000, 20000, 0, 64, 4, buffers));
  print("bytes", bytes, buffers);
  std::vector<int> memory(20000);
  std::vector<int*> in_order(buffers), anyhow(buffers);
  must(places(in_order.data(), memory.data(), bytes.data(), buffers, false));
  must(places(anyhow.data(), memory.data(), bytes.data(), buffers, true));
  std::vector<long long> ordered(buffers), shuffled(buffers);
  for (long long at = 0; at < buffers; ++at)
  {
    ordered[at]  = 4 * (in_order[at] - memory.data());
    shuffled[at] = 4 * (anyhow[at] - memory.data());
  }
  print("in_order", ordered);
  print("shuffled", shuffled);

  std::vector<float> sums(100000);
  must(terms(sums.data(), 100000));
  print("terms", sums);
  std::vector<cuda::std::complex<float>> squares(100000);
  must(positive_terms(squares.data(), 100000));
  std::vector<float> real(100000);
  for (size_t at = 0; at < real.size(); ++at)
  {
    real[at] = squares[at].real() + 10 * squares[at].imag();
  }
  print("positive", real);
  std::vector<int> whole(1000);
  must(terms(whole.data(), 1000));
  print("whole", whole);
  must(positive_terms(whole.data(), 1000));
  print("whole_too", whole);

  std::vector<float> keys{1, 2, 1};
  std::vector<int> values(3);
  must(of_keys(values.data(), 3, keys.data()));
  print("of_keys", values);

  const std::vector<int> sizes{40, 64};
  for (const char* name : {"random", "quantized", "relu", "ties", "pivot"})
  {
    static long long kind = 0;
    std::vector<float> made(128);
    must(patterned(made.data(), 128, sizes.data(), kind++, 64, 16));
    print(name, made);
  }

  const std::vector<int> some{1, 2, 3, 4}, moved{2, 1, 4, 3}, swapped{3, 2, 1, 4};
  const std::vector<char> with{'a', 'b', 'c', 'd'}, along{'b', 'a', 'd', 'c'}, apart{'b', 'a', 'c', 'd'};
  const auto groups = [](const std::vector<int>& one, const std::vector<int>& other, long long size) {
    long long first        = 0;
    const long long differ = compare_groups<int, char>(one.data(), other.data(), nullptr, nullptr, 4, size, &first);
    return 100 * differ + first;
  };
  const auto pairs = [&](const std::vector<char>& beside) {
    long long first        = 0;
    const long long differ = compare_groups(some.data(), moved.data(), with.data(), beside.data(), 4, 2, &first);
    return 100 * differ + first;
  };
  print("groups",
        std::vector<long long>{groups(some, moved, 2), groups(some, swapped, 2), groups(some, swapped, 4)});
  print("pairs", std::vector<long long>{pairs(along), pairs(apart)});

  std::vector<of_two<char, long long>> got(2), expected(2);
  std::memset(got.data(), 1, 2 * sizeof(got[0]));
  for (int at = 0; at < 2; ++at)
  {
    got[at].key   = expected[at].key   = 'a';
    got[at].value = expected[at].value = at;
  }
  long long first = 0;
  std::vector<long long> found{compare(got.data(), expected.data(), 2, 0.0, &first)};
  got[1].value = 7;
  found.push_back(compare(got.data(), expected.data(), 2, 0.0, &first));
  found.push_back(first);
  std::vector<std::pair<int, short>> left{{1, 2}}, right{{2, 2}};
  found.push_back(compare(left.data(), right.data(), 1, 0.0, &first));
  print("compared", found);
  std::printf("}\n");
  return failures;
}
