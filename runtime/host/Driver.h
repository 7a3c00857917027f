// SPDX-License-Identifier: Apache-2.0
//
// The part of the CUDA driver API that the runtime uses, declared here so that
// building needs no CUDA header, and opened at run time so that starting needs
// no driver. Names and values are those of cuda.h.

#ifndef MEGA_RUNTIME_HOST_DRIVER_H
#define MEGA_RUNTIME_HOST_DRIVER_H

#include <cstddef>

namespace megalith {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;

constexpr CUresult CUDA_SUCCESS = 0;
constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
constexpr CUresult CUDA_ERROR_NOT_READY = 600;

/// CUstream_flags.
constexpr unsigned CU_STREAM_NON_BLOCKING = 1;

/// CUdevice_attribute.
constexpr int CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
constexpr int CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95;
constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97;

/// CUfunction_attribute.
constexpr int CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0;
constexpr int CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1;
constexpr int CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;

/// X(name, exported symbol, parameters). The symbol has the version suffix
/// that cuda.h adds by macro.
#define MEGALITH_DRIVER_FUNCTIONS(X)                                           \
  X(cuInit, "cuInit", (unsigned flags))                                        \
  X(cuGetErrorName, "cuGetErrorName", (CUresult error, const char **text))     \
  X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **text)) \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                        \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))              \
  X(cuDeviceGetName, "cuDeviceGetName",                                        \
    (char *name, int bytes, CUdevice device))                                  \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute",                              \
    (int *value, int attribute, CUdevice device))                              \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                      \
    (CUcontext * context, CUdevice device))                                    \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2",                 \
    (CUdevice device))                                                         \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context))              \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext * context))              \
  X(cuCtxSynchronize, "cuCtxSynchronize", (void))                              \
  X(cuModuleLoadData, "cuModuleLoadData",                                      \
    (CUmodule * module, const void *image))                                    \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                       \
  X(cuModuleGetFunction, "cuModuleGetFunction",                                \
    (CUfunction * function, CUmodule module, const char *name))                \
  X(cuFuncGetAttribute, "cuFuncGetAttribute",                                  \
    (int *value, int attribute, CUfunction function))                          \
  X(cuFuncSetAttribute, "cuFuncSetAttribute",                                  \
    (CUfunction function, int attribute, int value))                           \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                               \
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",                             \
    (int *blocks, CUfunction function, int threads, size_t sharedBytes))       \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * address, size_t bytes))        \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr address))                          \
  X(cuMemsetD8, "cuMemsetD8_v2",                                               \
    (CUdeviceptr address, unsigned char value, size_t bytes))                  \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2",                                           \
    (CUdeviceptr to, const void *from, size_t bytes))                          \
  X(cuMemcpyDtoH, "cuMemcpyDtoH_v2",                                           \
    (void *to, CUdeviceptr from, size_t bytes))                                \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                 \
    (void *to, CUdeviceptr from, size_t bytes, CUstream stream))               \
  X(cuStreamCreate, "cuStreamCreate", (CUstream * stream, unsigned flags))     \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                  \
  X(cuStreamQuery, "cuStreamQuery", (CUstream stream))                         \
  X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel",                    \
    (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,      \
     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,  \
     CUstream stream, void **parameters))

/// The functions, all set.
struct Driver {
#define MEGALITH_DRIVER_MEMBER(name, symbol, parameters)                       \
  CUresult(*name) parameters;
  MEGALITH_DRIVER_FUNCTIONS(MEGALITH_DRIVER_MEMBER)
#undef MEGALITH_DRIVER_MEMBER
};

/// The machine's driver, opened once and kept. Throws NO_DRIVER if
/// libcuda.so.1 cannot be opened or lacks a symbol.
const Driver &openDriver();

/// Makes openDriver return `driver` from now on; null restores the machine's.
/// For tests: `driver` must outlive all instances made with it.
void replaceDriver(const Driver *driver);

/// Throws DRIVER_ERROR (RESOURCE_LIMIT for lack of memory) unless `result` is
/// CUDA_SUCCESS; `call` names the function and what it was for.
void checkDriver(const Driver &driver, CUresult result, const char *call);

} // namespace megalith

#endif
