// What a tuning header needs from the rest of CUB so that clang finds its entries. Inputs: none.
#define CUB_NAMESPACE_BEGIN namespace cub {
#define CUB_NAMESPACE_END }
#define CUB_DETAIL_MAGIC_NS_BEGIN
#define CUB_DETAIL_MAGIC_NS_END
#define CUB_NS_QUALIFIER ::cub
#define CUB_IS_INT128_ENABLED 1
#define CUB_RUNTIME_FUNCTION
#define CUB_DETAIL_KERNEL_ATTRIBUTES
#define _CCCL_API
#define _CCCL_CTK_AT_LEAST(...) 1
#define _CCCL_COMPILER(...) 0
#define _CCCL_CUB_HAS_TILE_TRANSFORM() 0
#define _CCCL_DEVICE
#define _CCCL_FORCEINLINE
#define _CCCL_HAS_CONCEPTS() 0
#define _CCCL_HAS_INT128() 1
#define _CCCL_HAS_NVBF16() 1
#define _CCCL_HAS_NVFP16() 1
#define _CCCL_HOST
#define _CCCL_HOSTED() 0
#define _CCCL_HOST_API
#define _CCCL_HOST_DEVICE
#define _CCCL_HOST_DEVICE_API
#define _CCCL_VISIBILITY_HIDDEN
using size_t = decltype(sizeof(0));
