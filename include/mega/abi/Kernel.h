/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between emitted kernels and the runtime, in plain C. Both sides
 * include this file and nothing of each other. Bump MEGA_ABI_VERSION with any
 * change to it or to the bundle's manifest.
 */
#ifndef MEGA_ABI_KERNEL_H
#define MEGA_ABI_KERNEL_H

#include <stdint.h>

#define MEGA_ABI_VERSION 1

/*
 * The one kernel parameter starts with this header; the addresses of the
 * states follow it, in the manifest's order, as `void *state[n]`. All
 * addresses are device addresses, at least 16-byte aligned.
 */
struct mega_kernel_header {
  const void *input; /* hidden vector in, manifest "input" */
  void *output;      /* hidden vector out, manifest "output"; may be input */
  const uint8_t *weights; /* weight arena, packed as the manifest says */
  uint8_t *workspace; /* manifest "workspace", zeroed once before first use */
  int64_t position;   /* tokens seen before this one: rows in every cache */
};

#endif
