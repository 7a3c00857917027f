/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a bundle; with weights, decodes a few tokens on GPU 0, each from
 * the last one's output.
 *
 *   decode BUNDLE [WEIGHTS.safetensors [TOKENS [PREFIX]]]
 *
 * PREFIX stands before the bundle's names in the file. An engine would keep its
 * vectors on the device and call megalith_step with its own stream; this
 * program needs no CUDA header, so it uses megalith_step_host.
 */
#include "mega/runtime/megalith.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program unless the call succeeds. */
static void check(megalith_status status) {
  if (status == MEGALITH_OK)
    return;
  fprintf(stderr, "decode: %s: %s\n", megalith_status_name(status),
          megalith_last_error());
  exit(1);
}

static void print_tensor(const char *kind, const megalith_tensor_info *info) {
  static const char *const dtypes[] = {"u8", "i32", "bf16", "f32"};
  int32_t i;
  printf("%s %s%s%s [", kind, info->name, *info->name ? " " : "",
         dtypes[info->dtype]);
  for (i = 0; i < info->rank; ++i)
    printf("%s%lld", i ? ", " : "", (long long)info->shape[i]);
  printf("]\n");
}

static void describe(const megalith_bundle *bundle) {
  megalith_tensor_info info;
  const char *block;
  size_t count, i;
  check(megalith_bundle_block(bundle, &block));
  printf("block %s\n", block);
  check(megalith_bundle_input(bundle, &info));
  print_tensor("input", &info);
  check(megalith_bundle_output(bundle, &info));
  print_tensor("output", &info);
  check(megalith_bundle_state_count(bundle, &count));
  for (i = 0; i < count; ++i) {
    check(megalith_bundle_state(bundle, i, &info));
    print_tensor("state", &info);
  }
  check(megalith_bundle_tensor_count(bundle, &count));
  printf("%zu checkpoint tensors\n", count);
}

static size_t bytes_of(const megalith_tensor_info *info) {
  size_t bytes = megalith_dtype_bytes(info->dtype);
  int32_t i;
  for (i = 0; i < info->rank; ++i)
    bytes *= (size_t)info->shape[i];
  return bytes;
}

/* The length of a bf16 or f32 vector. */
static double norm_of(const megalith_tensor_info *info, const void *data) {
  size_t step = megalith_dtype_bytes(info->dtype), at;
  double sum = 0;
  for (at = 0; at < bytes_of(info); at += step) {
    uint32_t bits = 0;
    float value;
    /* A bf16 is the upper half of an f32. */
    memcpy((char *)&bits + (4 - step), (const char *)data + at, step);
    memcpy(&value, &bits, sizeof value);
    sum += (double)value * value;
  }
  return sqrt(sum);
}

static void decode(const megalith_bundle *bundle, const char *weights,
                   long tokens, const char *prefix) {
  megalith_instance *instance;
  megalith_instance_info info;
  megalith_tensor_info input, output;
  void *hidden;
  long token;
  check(megalith_bundle_input(bundle, &input));
  check(megalith_bundle_output(bundle, &output));
  if (bytes_of(&input) != bytes_of(&output)) {
    fprintf(stderr, "decode: the output cannot be fed back\n");
    exit(1);
  }
  check(megalith_instance_create(bundle, 0, tokens, &instance));
  check(megalith_instance_get_info(instance, &info));
  printf("on %s, %s, %d ctas\n", info.device_name, info.arch, (int)info.ctas);
  check(megalith_bind_safetensors(instance, weights, prefix));
  check(megalith_weights_ready(instance));
  check(megalith_set_watchdog(instance, 10000));
  hidden = calloc(1, bytes_of(&input));
  if (!hidden)
    exit(1);
  /* Some token: a one in front. */
  ((unsigned char *)hidden)[megalith_dtype_bytes(input.dtype) - 1] = 0x3f;
  ((unsigned char *)hidden)[megalith_dtype_bytes(input.dtype) - 2] = 0x80;
  for (token = 0; token < tokens; ++token) {
    check(megalith_step_host(instance, hidden, hidden));
    printf("token %ld: length %g\n", token, norm_of(&output, hidden));
  }
  free(hidden);
  check(megalith_instance_destroy(instance));
}

int main(int argc, char **argv) {
  megalith_bundle *bundle;
  if (argc < 2 || argc > 5) {
    fprintf(stderr,
            "usage: decode BUNDLE [WEIGHTS.safetensors [TOKENS [PREFIX]]]\n");
    return 2;
  }
  printf("megalith %s\n", megalith_version_string());
  check(megalith_bundle_load(argv[1], &bundle));
  describe(bundle);
  if (argc > 2)
    decode(bundle, argv[2], argc > 3 ? atol(argv[3]) : 4,
           argc > 4 ? argv[4] : NULL);
  check(megalith_bundle_free(bundle));
  return 0;
}
