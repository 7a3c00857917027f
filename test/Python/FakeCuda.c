/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA driver whose device memory is host memory and whose kernel is a
 * callback. Built as libcuda.so.1, so that whatever opens the driver by that
 * name, with this folder on its library path, gets it.
 *
 * One device, of compute capability 9.0 with 132 SMs.
 */
#include <stdlib.h>
#include <string.h>

typedef int Result;
typedef unsigned long long Pointer;
/* The kernel's parameter and the stream it was launched on. */
typedef void (*Kernel)(const void *parameter, void *stream);

enum { OUT_OF_MEMORY = 2, INVALID_VALUE = 1, LAUNCH_FAILED = 719 };

/* What tests read and set, through ctypes. */
Kernel fake_kernel;
long fake_launches, fake_waits, fake_allocations, fake_allocated_bytes;
long fake_fail_launch, fake_depth;

static struct Allocation {
  Pointer address;
  size_t bytes;
} live[4096];

static char context;

Result cuInit(unsigned flags) { return 0; }

Result cuGetErrorName(Result error, const char **text) {
  *text = error == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR";
  return 0;
}

Result cuGetErrorString(Result error, const char **text) {
  *text = "a fake error";
  return 0;
}

Result cuDeviceGetCount(int *count) {
  *count = 1;
  return 0;
}

Result cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}

Result cuDeviceGetName(char *name, int bytes, int device) {
  strncpy(name, "Fake GPU", (size_t)bytes);
  return 0;
}

Result cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
  case 16: /* multiprocessors */
    *value = 132;
    return 0;
  case 75: /* compute capability, major */
    *value = 9;
    return 0;
  case 76: /* and minor */
    *value = 0;
    return 0;
  case 95: /* cooperative launch */
    *value = 1;
    return 0;
  case 97: /* shared memory a CTA can opt into */
    *value = 232448;
    return 0;
  default: /* none that a test needs */
    *value = 0;
    return 0;
  }
}

Result cuDevicePrimaryCtxRetain(void **result, int device) {
  *result = &context;
  return device == 0 ? 0 : INVALID_VALUE;
}

Result cuDevicePrimaryCtxRelease_v2(int device) { return 0; }

Result cuCtxPushCurrent_v2(void *pushed) {
  ++fake_depth;
  return pushed == &context ? 0 : INVALID_VALUE;
}

Result cuCtxPopCurrent_v2(void **popped) {
  --fake_depth;
  *popped = &context;
  return 0;
}

Result cuCtxSynchronize(void) {
  ++fake_waits;
  return fake_depth > 0 ? 0 : INVALID_VALUE;
}

Result cuModuleLoadData(void **module, const void *image) {
  *module = &context;
  return 0;
}

Result cuModuleUnload(void *module) { return 0; }

Result cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = &context;
  return 0;
}

Result cuFuncGetAttribute(int *value, int attribute, void *function) {
  *value = attribute == 0 ? 1024 : 0;
  return 0;
}

Result cuFuncSetAttribute(void *function, int attribute, int value) {
  return 0;
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function,
                                                   int threads,
                                                   size_t shared) {
  *blocks = 1;
  return 0;
}

Result cuMemAlloc_v2(Pointer *address, size_t bytes) {
  void *memory = NULL;
  for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); ++i)
    if (live[i].address == 0) {
      if (posix_memalign(&memory, 256, bytes) != 0)
        return OUT_OF_MEMORY;
      *address = live[i].address = (Pointer)memory;
      live[i].bytes = bytes;
      ++fake_allocations;
      fake_allocated_bytes += (long)bytes;
      return 0;
    }
  return OUT_OF_MEMORY;
}

Result cuMemFree_v2(Pointer address) {
  for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); ++i)
    if (live[i].address == address) {
      free((void *)address);
      live[i].address = 0;
      --fake_allocations;
      fake_allocated_bytes -= (long)live[i].bytes;
      return 0;
    }
  return INVALID_VALUE;
}

Result cuMemsetD8_v2(Pointer address, unsigned char value, size_t bytes) {
  memset((void *)address, value, bytes);
  return 0;
}

Result cuMemcpyHtoD_v2(Pointer to, const void *from, size_t bytes) {
  memcpy((void *)to, from, bytes);
  return 0;
}

Result cuMemcpyDtoH_v2(void *to, Pointer from, size_t bytes) {
  memcpy(to, (const void *)from, bytes);
  return 0;
}

Result cuMemcpyDtoHAsync_v2(void *to, Pointer from, size_t bytes,
                            void *stream) {
  return cuMemcpyDtoH_v2(to, from, bytes);
}

Result cuStreamCreate(void **stream, unsigned flags) {
  *stream = &context;
  return 0;
}

Result cuStreamDestroy_v2(void *stream) { return 0; }

Result cuStreamQuery(void *stream) { return 0; }

Result cuLaunchCooperativeKernel(void *function, unsigned x, unsigned y,
                                 unsigned z, unsigned a, unsigned b,
                                 unsigned c, unsigned shared, void *stream,
                                 void **parameters) {
  if (fake_fail_launch)
    return LAUNCH_FAILED;
  ++fake_launches;
  if (fake_kernel)
    fake_kernel(parameters[0], stream);
  return 0;
}
