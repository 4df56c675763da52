// Part of policygen's miniature tree: a benchmark with a search space of its own.

#include <nvbench_helper.cuh>

// %RANGE% TUNE_ITEMS ipt 7:24:1
// %RANGE% TUNE_THREADS tpb 128:1024:32
// %RANGE% TUNE_TRANSPOSE trp 0:1:1

template <typename PixelT, typename OffsetT>
void blur(nvbench::state& state, nvbench::type_list<PixelT, OffsetT>)
{
  run_blur<PixelT, OffsetT>(state, state.get_int64("Elements{io}"), state.get_string("Entropy"));
}

#ifdef TUNE_PixelT
using pixel_types = nvbench::type_list<TUNE_PixelT>;
#else
using pixel_types = nvbench::type_list<uint8_t, int32_t, float>;
#endif

NVBENCH_BENCH_TYPES(blur, NVBENCH_TYPE_AXES(pixel_types, offset_types))
  .set_name("base")
  .set_type_axes_names({"PixelT{ct}", "OffsetT{ct}"})
  .add_int64_power_of_two_axis("Elements{io}", nvbench::range(16, 28, 4))
  .add_string_axis("Entropy", {"1.000", "0.201"});
