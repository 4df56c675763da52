// Times calls on a GPU, each alone, with a cold L2 cache; compiled once for all units.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>

#define POLICYGEN_API extern "C" __attribute__((visibility("default")))

struct policygen_arena
{
  char* base;
  size_t capacity;
  size_t used;
  size_t needed;
};
using policygen_function = int (*)(void* const*, const long long*, policygen_arena*, cudaStream_t);

namespace
{
struct device_state
{
  cudaStream_t stream    = nullptr;
  cudaEvent_t begin      = nullptr;
  cudaEvent_t end        = nullptr;
  char* flushed          = nullptr;
  size_t flushed_bytes   = 0;
  volatile int* released = nullptr; // written by the host, read by the GPU
  int* seen              = nullptr;
  policygen_arena arena{};
};
device_state state;

// Keeps the stream busy until the host has enqueued all that is timed; after `limit` nanoseconds it gives up.
__global__ void wait_for_host(const volatile int* released, volatile int* gave_up, long long limit)
{
  long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  const long long last = now + limit;
  while (*released == 0)
  {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    if (now > last)
    {
      *gave_up = 1;
      return;
    }
  }
}

// Cycles of the multiprocessor in some nanoseconds of the wall.
__global__ void count_cycles(long long* cycles, long long nanoseconds)
{
  long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  const long long last  = now + nanoseconds;
  const long long start = clock64();
  const long long first = now;
  while (now < last)
  {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  }
  cycles[0] = clock64() - start;
  cycles[1] = now - first;
}

// Four loads of a thread are under way at once.
__global__ void copy_all(const uint4* from, uint4* to)
{
  const long long first = 1024ll * blockIdx.x + threadIdx.x;
  uint4 held[4];
  for (int at = 0; at < 4; ++at)
  {
    held[at] = from[first + 256 * at];
  }
  for (int at = 0; at < 4; ++at)
  {
    to[first + 256 * at] = held[at];
  }
}

constexpr long long patience = 2000000000; // nanoseconds
} // namespace

// What a GPU is, one `name=value` a line.
POLICYGEN_API int policygen_describe(int device, char* text, size_t bytes)
{
  cudaDeviceProp found{};
  int driver       = 0;
  int runtime      = 0;
  int sm_clock     = 0;
  int memory_clock = 0;
  cudaDeviceGetAttribute(&sm_clock, cudaDevAttrClockRate, device);
  cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, device);
  if (const cudaError_t error = cudaGetDeviceProperties(&found, device))
  {
    return error;
  }
  if (const cudaError_t error = cudaDriverGetVersion(&driver))
  {
    return error;
  }
  if (const cudaError_t error = cudaRuntimeGetVersion(&runtime))
  {
    return error;
  }
  char uuid[37];
  int written = 0;
  for (int at = 0; at < 16; ++at)
  {
    const bool dash = at == 4 || at == 6 || at == 8 || at == 10;
    written += snprintf(
      uuid + written, sizeof(uuid) - written, "%s%02x", dash ? "-" : "", static_cast<unsigned char>(found.uuid.bytes[at]));
  }
  snprintf(
    text,
    bytes,
    "name=%s\nuuid=GPU-%s\nmajor=%d\nminor=%d\nsms=%d\nbus=%d\necc=%d\nl2=%d\nmemory=%zu\nshared=%zu\ndriver=%d\nruntime=%d\nsm_clock=%d\nmemory_clock=%d\n",
    found.name,
    uuid,
    found.major,
    found.minor,
    found.multiProcessorCount,
    found.memoryBusWidth,
    found.ECCEnabled,
    found.l2CacheSize,
    found.totalGlobalMem,
    found.sharedMemPerBlockOptin,
    driver,
    runtime,
    sm_clock,
    memory_clock);
  return 0;
}

// Makes the stream, the events and what flushes the L2 cache.
POLICYGEN_API int policygen_open(int device)
{
  cudaDeviceProp found{};
  if (const cudaError_t error = cudaSetDevice(device))
  {
    return error;
  }
  if (const cudaError_t error = cudaGetDeviceProperties(&found, device))
  {
    return error;
  }
  if (const cudaError_t error = cudaStreamCreate(&state.stream))
  {
    return error;
  }
  if (const cudaError_t error = cudaEventCreate(&state.begin))
  {
    return error;
  }
  if (const cudaError_t error = cudaEventCreate(&state.end))
  {
    return error;
  }
  state.flushed_bytes = static_cast<size_t>(found.l2CacheSize);
  if (const cudaError_t error = cudaMalloc(&state.flushed, state.flushed_bytes + 1))
  {
    return error;
  }
  int* both = nullptr;
  if (const cudaError_t error = cudaHostAlloc(&both, 2 * sizeof(int), cudaHostAllocMapped))
  {
    return error;
  }
  state.released = both;
  state.seen     = both + 1;
  return 0;
}

// Runs a function once and waits for it; makes its temporary storage as large as it says.
POLICYGEN_API int policygen_run(policygen_function function, void* const* buffers, const long long* sizes)
{
  int error = function(buffers, sizes, &state.arena, state.stream);
  if (error == cudaErrorMemoryAllocation && state.arena.needed > state.arena.capacity)
  {
    cudaGetLastError();
    if (const cudaError_t failed = cudaStreamSynchronize(state.stream))
    {
      return failed;
    }
    cudaFree(state.arena.base);
    state.arena.base     = nullptr;
    state.arena.capacity = 0;
    if (const cudaError_t failed = cudaMalloc(&state.arena.base, state.arena.needed))
    {
      return failed;
    }
    state.arena.capacity = state.arena.needed;
    error                = function(buffers, sizes, &state.arena, state.stream);
  }
  if (error)
  {
    cudaGetLastError();
    return error;
  }
  if (const cudaError_t failed = cudaGetLastError())
  {
    return failed;
  }
  return cudaStreamSynchronize(state.stream);
}

// Milliseconds of one call. `held` keeps the stream busy until all of the call is enqueued; -1 if the call waits for
// the GPU itself, so that it cannot be held. If it is not held, what the host does between its launches counts, too.
// Its code is warm and its data is cold, as in NVBench, which runs one kernel again and again: whoever ran before must
// not matter. A function that modifies what it reads was run before by whoever made its inputs anew.
POLICYGEN_API int policygen_time(
  policygen_function function, void* const* buffers, const long long* sizes, int warm, int held, float* milliseconds)
{
  *state.released = 0;
  *state.seen     = 0;
  if (!warm)
  {
    if (const int error = function(buffers, sizes, &state.arena, state.stream))
    {
      cudaGetLastError();
      return error;
    }
  }
  cudaMemsetAsync(state.flushed, 0, state.flushed_bytes, state.stream);
  if (const cudaError_t error = cudaStreamSynchronize(state.stream))
  {
    return error;
  }
  if (held)
  {
    wait_for_host<<<1, 1, 0, state.stream>>>(state.released, state.seen, patience);
  }
  cudaEventRecord(state.begin, state.stream);
  const int error = function(buffers, sizes, &state.arena, state.stream);
  cudaEventRecord(state.end, state.stream);
  *state.released = 1;
  const cudaError_t waited = cudaStreamSynchronize(state.stream);
  if (error)
  {
    cudaGetLastError();
    return error;
  }
  if (waited)
  {
    return waited;
  }
  const cudaError_t told = cudaEventElapsedTime(milliseconds, state.begin, state.end);
  if (*state.seen)
  {
    *milliseconds = -1;
  }
  return told;
}

// The clock of the multiprocessors in MHz, as a kernel counts it.
POLICYGEN_API int policygen_clock(double* megahertz)
{
  long long* cycles = nullptr;
  long long host[2]{};
  if (const cudaError_t error = cudaMalloc(&cycles, sizeof(host)))
  {
    return error;
  }
  count_cycles<<<1, 1, 0, state.stream>>>(cycles, 200000);
  const cudaError_t error = cudaMemcpyAsync(host, cycles, sizeof(host), cudaMemcpyDeviceToHost, state.stream);
  const cudaError_t waited = cudaStreamSynchronize(state.stream);
  cudaFree(cycles);
  *megahertz = host[1] ? 1000.0 * static_cast<double>(host[0]) / static_cast<double>(host[1]) : 0;
  return error ? error : waited;
}

POLICYGEN_API int policygen_allocate(void** to, size_t bytes)
{
  return cudaMalloc(to, bytes ? bytes : 1);
}

POLICYGEN_API int policygen_release(void* from)
{
  return cudaFree(from);
}

// What was not written looks the same everywhere.
POLICYGEN_API int policygen_clear(void* to, size_t bytes)
{
  const cudaError_t error = cudaMemset(to, 0x5a, bytes);
  return error ? error : cudaDeviceSynchronize();
}

POLICYGEN_API int policygen_copy(void* to, const void* from, size_t bytes)
{
  const cudaError_t error = cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
  return error ? error : cudaDeviceSynchronize();
}

POLICYGEN_API int policygen_error(int code, char* text, size_t bytes)
{
  snprintf(text, bytes, "%s: %s", cudaGetErrorName(static_cast<cudaError_t>(code)), cudaGetErrorString(static_cast<cudaError_t>(code)));
  return 0;
}

// Bytes that are read and written in a second where memory is copied: the middle of some copies of half a gigabyte.
POLICYGEN_API int policygen_bandwidth(double* bytes_per_second)
{
  constexpr long long count = 1ll << 25; // of 16 bytes
  constexpr int runs        = 15;
  uint4* places[2]{};
  float found[runs]{};
  cudaError_t error = cudaSuccess;
  for (auto& place : places)
  {
    error = error ? error : cudaMalloc(&place, count * sizeof(uint4));
  }
  for (int at = 0; at < runs && !error; ++at)
  {
    cudaEventRecord(state.begin, state.stream);
    copy_all<<<static_cast<unsigned>(count / 1024), 256, 0, state.stream>>>(places[0], places[1]);
    cudaEventRecord(state.end, state.stream);
    error = cudaStreamSynchronize(state.stream);
    error = error ? error : cudaEventElapsedTime(found + at, state.begin, state.end);
  }
  cudaFree(places[0]);
  cudaFree(places[1]);
  if (!error)
  {
    std::sort(found, found + runs);
    *bytes_per_second = 2000.0 * static_cast<double>(count * sizeof(uint4)) / static_cast<double>(found[runs / 2]);
  }
  cudaGetLastError();
  return error;
}
