/* A CUDA runtime without a GPU: memory of the host in place of the device's, and launches that are recorded.
 *
 * Kernels do not run. What units and CUB do on the host does: sizes, storage, grids, attributes, copies.
 * Each allocation has guards on both sides; what a call of the runtime writes must lie within one. */
#include <cuda_runtime_api.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum
{
  GUARD    = 4096,
  MOST     = 4096,
  NAME     = 512,
  PATTERN  = 0xA5,
  SMS      = 132,
  SHARED   = 49152,
  OPT_IN   = 232448,
  PER_SM   = 233472,
  RESERVED = 1024,
  THREADS  = 2048,
  L2       = 52428800
};

struct allocation
{
  unsigned char* base; /* of the first guard */
  size_t bytes;
};
struct function
{
  const void* host;
  char name[NAME];
  size_t shared; /* what a launch may ask for */
};
struct launch
{
  const struct function* function;
  dim3 grid, block;
  size_t shared;
};

static struct allocation allocations[MOST];
static struct function functions[MOST];
static struct launch launches[MOST];
static int function_count, launch_count, broken, refused;
static cudaError_t last = cudaSuccess;

static cudaError_t told(cudaError_t error)
{
  if (error != cudaSuccess)
  {
    last = error;
  }
  return error;
}

/* What tests ask. */
API int stub_launches(void)
{
  return launch_count;
}
API const char* stub_name(int at)
{
  return at < launch_count ? launches[at].function->name : "";
}
API void stub_dimensions(int at, unsigned long long* seven)
{
  const struct launch* one = &launches[at];
  seven[0]                 = one->grid.x;
  seven[1]                 = one->grid.y;
  seven[2]                 = one->grid.z;
  seven[3]                 = one->block.x;
  seven[4]                 = one->block.y;
  seven[5]                 = one->block.z;
  seven[6]                 = one->shared;
}
API void stub_forget(void)
{
  launch_count = 0;
  refused      = 0;
  last         = cudaSuccess;
}
/* Calls that would write, or read, where no memory of the device is. */
API int stub_refused(void)
{
  return refused;
}
API size_t stub_allocated(void)
{
  size_t sum = 0;
  for (int at = 0; at < MOST; ++at)
  {
    sum += allocations[at].base ? allocations[at].bytes : 0;
  }
  return sum;
}
static int intact(const struct allocation* one)
{
  for (size_t at = 0; at < GUARD; ++at)
  {
    if (one->base[at] != PATTERN || one->base[GUARD + one->bytes + at] != PATTERN)
    {
      return 0;
    }
  }
  return 1;
}
/* Allocations, also those that are no more, beside which somebody wrote. */
API int stub_broken(void)
{
  int found = broken;
  for (int at = 0; at < MOST; ++at)
  {
    found += allocations[at].base && !intact(&allocations[at]);
  }
  return found;
}

static int within(const void* place, size_t bytes)
{
  for (int at = 0; at < MOST; ++at)
  {
    const unsigned char* first = allocations[at].base ? allocations[at].base + GUARD : NULL;
    const unsigned char* from  = place;
    if (first && from >= first && from + bytes <= first + allocations[at].bytes)
    {
      return 1;
    }
  }
  return 0;
}
static cudaError_t touched(const void* place, size_t bytes, int on_device)
{
  if (bytes && on_device && !within(place, bytes))
  {
    ++refused;
    return told(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

/* Memory. */
API cudaError_t cudaMalloc(void** to, size_t bytes)
{
  for (int at = 0; at < MOST; ++at)
  {
    if (!allocations[at].base)
    {
      unsigned char* base = aligned_alloc(GUARD, (2 * GUARD + bytes + GUARD - 1) / GUARD * GUARD);
      if (!base)
      {
        break;
      }
      memset(base, PATTERN, GUARD);
      memset(base + GUARD, 0, bytes);
      memset(base + GUARD + bytes, PATTERN, GUARD);
      allocations[at].base  = base;
      allocations[at].bytes = bytes;
      *to                   = base + GUARD;
      return cudaSuccess;
    }
  }
  *to = NULL;
  return told(cudaErrorMemoryAllocation);
}
API cudaError_t cudaFree(void* from)
{
  for (int at = 0; from && at < MOST; ++at)
  {
    if (allocations[at].base && allocations[at].base + GUARD == from)
    {
      broken += !intact(&allocations[at]);
      free(allocations[at].base);
      allocations[at].base = NULL;
      return cudaSuccess;
    }
  }
  return from ? told(cudaErrorInvalidValue) : cudaSuccess;
}
API cudaError_t cudaMallocManaged(void** to, size_t bytes, unsigned int flags)
{
  (void) flags;
  return cudaMalloc(to, bytes);
}
API cudaError_t cudaMallocAsync(void** to, size_t bytes, cudaStream_t stream)
{
  (void) stream;
  return cudaMalloc(to, bytes);
}
API cudaError_t cudaFreeAsync(void* from, cudaStream_t stream)
{
  (void) stream;
  return cudaFree(from);
}
API cudaError_t cudaHostAlloc(void** to, size_t bytes, unsigned int flags)
{
  (void) flags;
  *to = calloc(1, bytes);
  return *to ? cudaSuccess : told(cudaErrorMemoryAllocation);
}
API cudaError_t cudaMallocHost(void** to, size_t bytes)
{
  return cudaHostAlloc(to, bytes, 0);
}
API cudaError_t cudaFreeHost(void* from)
{
  free(from);
  return cudaSuccess;
}
API cudaError_t cudaMemset(void* to, int value, size_t bytes)
{
  const cudaError_t error = touched(to, bytes, 1);
  if (error == cudaSuccess)
  {
    memset(to, value, bytes);
  }
  return error;
}
API cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream)
{
  (void) stream;
  return cudaMemset(to, value, bytes);
}
API cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind)
{
  const int device_to   = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const int device_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  cudaError_t error     = touched(from, bytes, device_from);
  if (error == cudaSuccess)
  {
    error = touched(to, bytes, device_to);
  }
  if (error == cudaSuccess)
  {
    memmove(to, from, bytes);
  }
  return error;
}
API cudaError_t
cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  (void) stream;
  return cudaMemcpy(to, from, bytes, kind);
}
API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* to, const void* place)
{
  memset(to, 0, sizeof(*to));
  to->type          = within(place, 0) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  to->devicePointer = (void*) place;
  to->hostPointer   = (void*) place;
  return cudaSuccess;
}

/* The device. */
API cudaError_t cudaGetDeviceCount(int* count)
{
  *count = 1;
  return cudaSuccess;
}
API cudaError_t cudaGetDevice(int* device)
{
  *device = 0;
  return cudaSuccess;
}
API cudaError_t cudaSetDevice(int device)
{
  return told(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
API cudaError_t cudaDeviceSynchronize(void)
{
  return cudaSuccess;
}
API cudaError_t cudaDriverGetVersion(int* version)
{
  *version = CUDART_VERSION;
  return cudaSuccess;
}
API cudaError_t cudaRuntimeGetVersion(int* version)
{
  *version = CUDART_VERSION;
  return cudaSuccess;
}
API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* to, int device)
{
  memset(to, 0, sizeof(*to));
  strcpy(to->name, "NVIDIA H200");
  memcpy(to->uuid.bytes, "a stub, no GPU!", sizeof(to->uuid.bytes));
  to->totalGlobalMem              = (size_t) 140 << 30;
  to->major                       = 9;
  to->multiProcessorCount         = SMS;
  to->memoryBusWidth              = 6144;
  to->ECCEnabled                  = 1;
  to->l2CacheSize                 = L2;
  to->warpSize                    = 32;
  to->maxThreadsPerBlock          = 1024;
  to->maxThreadsPerMultiProcessor = THREADS;
  to->sharedMemPerBlock           = SHARED;
  to->sharedMemPerBlockOptin      = OPT_IN;
  to->sharedMemPerMultiprocessor  = PER_SM;
  to->reservedSharedMemPerBlock   = RESERVED;
  to->maxGridSize[0]              = 2147483647;
  to->maxGridSize[1]              = 65535;
  to->maxGridSize[2]              = 65535;
  return told(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
API cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device)
{
  (void) device;
  switch (attribute)
  {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      *value = 1024;
      break;
    case cudaDevAttrMaxBlockDimZ:
      *value = 64;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = 2147483647;
      break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *value = 65535;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = SHARED;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = OPT_IN;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = PER_SM;
      break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      *value = RESERVED;
      break;
    case cudaDevAttrWarpSize:
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *value = 32;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = SMS;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = THREADS;
      break;
    case cudaDevAttrL2CacheSize:
      *value = L2;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrClockRate:
      *value = 1980000;
      break;
    case cudaDevAttrMemoryClockRate:
      *value = 3201000;
      break;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = 6144;
      break;
    case cudaDevAttrMemoryPoolsSupported:
      *value = 1;
      break;
    default: /* the minor number of the capability among them */
      *value = 0;
  }
  return cudaSuccess;
}

/* Errors. */
API cudaError_t cudaGetLastError(void)
{
  const cudaError_t error = last;
  last                    = cudaSuccess;
  return error;
}
API cudaError_t cudaPeekAtLastError(void)
{
  return last;
}
API const char* cudaGetErrorName(cudaError_t error)
{
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
       : error == cudaErrorInvalidValue     ? "cudaErrorInvalidValue"
                                            : "cudaError";
}
API const char* cudaGetErrorString(cudaError_t error)
{
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the stub";
}

/* Streams and events: everything has happened when it is asked for. */
API cudaError_t cudaStreamCreate(cudaStream_t* stream)
{
  *stream = (cudaStream_t) malloc(1);
  return cudaSuccess;
}
API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags)
{
  (void) flags;
  return cudaStreamCreate(stream);
}
API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
  free(stream);
  return cudaSuccess;
}
API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
  (void) stream;
  return cudaSuccess;
}
API cudaError_t cudaStreamQuery(cudaStream_t stream)
{
  (void) stream;
  return cudaSuccess;
}
API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
  (void) stream;
  (void) event;
  (void) flags;
  return cudaSuccess;
}
API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status)
{
  (void) stream;
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
API cudaError_t cudaEventCreate(cudaEvent_t* event)
{
  *event = (cudaEvent_t) malloc(1);
  return cudaSuccess;
}
API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags)
{
  (void) flags;
  return cudaEventCreate(event);
}
API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
  free(event);
  return cudaSuccess;
}
API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
  (void) event;
  (void) stream;
  return cudaSuccess;
}
API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
  (void) event;
  return cudaSuccess;
}
API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
  (void) begin;
  (void) end;
  *milliseconds = 0.25f;
  return cudaSuccess;
}

/* Kernels. */
static struct function* found(const void* host)
{
  for (int at = function_count; at-- > 0;)
  {
    if (functions[at].host == host)
    {
      return &functions[at];
    }
  }
  return NULL;
}
static cudaError_t launched(const void* host, dim3 grid, dim3 block, size_t shared)
{
  const struct function* one = found(host);
  if (!one)
  {
    return told(cudaErrorInvalidDeviceFunction);
  }
  const size_t threads = (size_t) block.x * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024)
  {
    return told(cudaErrorInvalidConfiguration);
  }
  if (shared > one->shared)
  {
    return told(cudaErrorInvalidValue);
  }
  if (launch_count == MOST)
  {
    return told(cudaErrorLaunchOutOfResources);
  }
  launches[launch_count].function = one;
  launches[launch_count].grid     = grid;
  launches[launch_count].block    = block;
  launches[launch_count].shared   = shared;
  ++launch_count;
  return cudaSuccess;
}
API cudaError_t
cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream)
{
  (void) arguments;
  (void) stream;
  return launched(host, grid, block, shared);
}
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* host, void** arguments)
{
  (void) arguments;
  return launched(host, config->gridDim, config->blockDim, config->dynamicSmemBytes);
}
API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* to, const void* host)
{
  const struct function* one = found(host);
  memset(to, 0, sizeof(*to));
  to->ptxVersion                = 90;
  to->binaryVersion             = 90;
  to->numRegs                   = 32;
  to->maxThreadsPerBlock        = 1024;
  to->maxDynamicSharedSizeBytes = one ? (int) one->shared : 0;
  return told(one ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}
API cudaError_t cudaFuncSetAttribute(const void* host, enum cudaFuncAttribute attribute, int value)
{
  struct function* one = found(host);
  if (!one)
  {
    return told(cudaErrorInvalidDeviceFunction);
  }
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
  {
    if (value < 0 || value > OPT_IN)
    {
      return told(cudaErrorInvalidValue);
    }
    one->shared = (size_t) (value > SHARED ? value : SHARED);
  }
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
  int* blocks, const void* host, int threads, size_t shared, unsigned int flags)
{
  (void) flags;
  *blocks = 0;
  if (!found(host) || threads < 1 || threads > 1024)
  {
    return told(cudaErrorInvalidValue);
  }
  const int by_threads = THREADS / threads;
  const int by_shared  = (int) (PER_SM / (shared + RESERVED));
  const int least      = by_threads < by_shared ? by_threads : by_shared;
  *blocks              = least < 32 ? least : 32;
  return cudaSuccess;
}
API cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int threads, size_t shared)
{
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, shared, 0);
}

/* What nvcc's own code calls. */
static __thread struct
{
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} pushed;

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
  pushed.grid   = grid;
  pushed.block  = block;
  pushed.shared = shared;
  pushed.stream = stream;
  return 0;
}
API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream)
{
  *grid                   = pushed.grid;
  *block                  = pushed.block;
  *shared                 = pushed.shared;
  *(cudaStream_t*) stream = pushed.stream;
  return cudaSuccess;
}
API cudaError_t __cudaGetKernel(const void** kernel, const void* host)
{
  *kernel = host;
  return found(host) ? cudaSuccess : told(cudaErrorInvalidDeviceFunction);
}
API cudaError_t
__cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream)
{
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
API void** __cudaRegisterFatBinary(void* binary)
{
  void** handle = malloc(sizeof(void*));
  *handle       = binary;
  return handle;
}
API void __cudaRegisterFatBinaryEnd(void** handle)
{
  (void) handle;
}
API void __cudaUnregisterFatBinary(void** handle)
{
  free(handle);
}
API void __cudaRegisterFunction(
  void** handle,
  const char* host,
  char* device,
  const char* name,
  int limit,
  void* thread,
  void* block,
  void* block_size,
  void* grid_size,
  int* warp)
{
  (void) handle;
  (void) device;
  (void) limit;
  (void) thread;
  (void) block;
  (void) block_size;
  (void) grid_size;
  (void) warp;
  if (function_count < MOST)
  {
    functions[function_count].host   = host;
    functions[function_count].shared = SHARED;
    snprintf(functions[function_count].name, NAME, "%s", name);
    ++function_count;
  }
}
API void __cudaRegisterVar(
  void** handle, char* host, char* device, const char* name, int outside, size_t size, int constant, int global)
{
  (void) handle;
  (void) host;
  (void) device;
  (void) name;
  (void) outside;
  (void) size;
  (void) constant;
  (void) global;
}
