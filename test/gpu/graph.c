/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps captured into CUDA graphs and replayed: the same bits as direct steps,
 * also after the input was overwritten in place, and for two instances that
 * share weights, each with its graph on its own stream.
 *
 *   graph BUNDLE WEIGHTS.safetensors [PREFIX]
 *
 * Exit status 0 if all agree, 1 if not, 77 without a driver or a kernel for the
 * device. Needs no CUDA header: the few driver functions are declared here as
 * in cuda.h.
 */
#include "mega/runtime/megalith.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER(X)                                                              \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))      \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (void *))                              \
  X(cuMemAlloc, "cuMemAlloc_v2", (unsigned long long *, size_t))               \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2",                                           \
    (unsigned long long, const void *, size_t))                                \
  X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *, unsigned long long, size_t))     \
  X(cuStreamCreate, "cuStreamCreate", (void **, unsigned))                     \
  X(cuStreamSynchronize, "cuStreamSynchronize", (void *))                      \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (void *, int))            \
  X(cuStreamEndCapture, "cuStreamEndCapture", (void *, void **))               \
  X(cuGraphGetNodes, "cuGraphGetNodes", (void *, void **, size_t *))           \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                         \
    (void **, void *, unsigned long long))                                     \
  X(cuGraphLaunch, "cuGraphLaunch", (void *, void *))

#define DECLARE(name, symbol, parameters) static int(*name) parameters;
DRIVER(DECLARE)

static void load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "graph: no driver\n");
    exit(77);
  }
#define LOAD(name, symbol, parameters)                                         \
  *(void **)&name = dlsym(library, symbol);                                    \
  if (!name) {                                                                 \
    fprintf(stderr, "graph: libcuda.so.1 has no %s\n", symbol);                \
    exit(1);                                                                   \
  }
  DRIVER(LOAD)
}

/* Ends the program unless a driver call returns 0. */
#define CUDA(call)                                                             \
  do {                                                                         \
    int result = (call);                                                       \
    if (result != 0) {                                                         \
      fprintf(stderr, "graph: line %d: %s: error %d\n", __LINE__, #call,       \
              result);                                                         \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* The same for the runtime's calls. */
#define CHECK(call)                                                            \
  do {                                                                         \
    megalith_status status = (call);                                           \
    if (status != MEGALITH_OK) {                                               \
      fprintf(stderr, "graph: line %d: %s: %s\n", __LINE__,                    \
              megalith_status_name(status), megalith_last_error());            \
      exit(status == MEGALITH_NO_KERNEL || status == MEGALITH_NO_DRIVER ? 77   \
                                                                        : 1);  \
    }                                                                          \
  } while (0)

enum { steps = 3, sequences = 2, context = 3, rows = 64 };

/* A sequence: its instance, stream, vectors, and graph of `steps` steps. */
struct sequence {
  megalith_instance *instance;
  void *stream;
  unsigned long long input, output[steps];
  void *graph;
};

static size_t in_bytes, out_bytes;
static int failures;

static size_t bytes_of(const megalith_tensor_info *info) {
  size_t bytes = megalith_dtype_bytes(info->dtype);
  int32_t i;
  for (i = 0; i < info->rank; ++i)
    bytes *= (size_t)info->shape[i];
  return bytes;
}

/* A token: small bf16 numbers, from 1/16 up; `salt` tells tokens apart. */
static void write_token(struct sequence *s, unsigned salt) {
  unsigned char *token = malloc(in_bytes);
  size_t i;
  for (i = 0; i < in_bytes; ++i)
    token[i] = i % 2 ? (unsigned char)((i * 7 + salt) % 5 < 2 ? 0xbd : 0x3d)
                     : (unsigned char)(i * 37 + salt * 91);
  CUDA(cuMemcpyHtoD(s->input, token, in_bytes));
  free(token);
}

/* Zero states, at `context` tokens. */
static void start(struct sequence *s) {
  CHECK(megalith_reset(s->instance));
  CHECK(megalith_set_position(s->instance, context));
}

static void enqueue(struct sequence *s) {
  int i;
  for (i = 0; i < steps; ++i)
    CHECK(megalith_step(s->instance, (void *)(uintptr_t)s->input,
                        (void *)(uintptr_t)s->output[i], s->stream));
}

/* Outputs of all steps, one behind the other. */
static unsigned char *outputs(struct sequence *s) {
  unsigned char *all = malloc(steps * out_bytes);
  int i;
  CHECK(megalith_wait(s->instance, s->stream, 10000));
  for (i = 0; i < steps; ++i)
    CUDA(cuMemcpyDtoH(all + (size_t)i * out_bytes, s->output[i], out_bytes));
  return all;
}

static unsigned char *direct(struct sequence *s) {
  start(s);
  enqueue(s);
  return outputs(s);
}

static void capture(struct sequence *s) {
  void *graph;
  size_t nodes = 0;
  int64_t position;
  start(s);
  CUDA(cuStreamBeginCapture(s->stream, 0));
  enqueue(s);
  CUDA(cuStreamEndCapture(s->stream, &graph));
  CUDA(cuGraphGetNodes(graph, NULL, &nodes));
  if (nodes != steps) {
    printf("FAIL: %d steps made %zu nodes\n", steps, nodes);
    ++failures;
  }
  CHECK(megalith_get_position(s->instance, &position));
  if (position != context + steps) {
    printf("FAIL: capturing left position %lld\n", (long long)position);
    ++failures;
  }
  CUDA(cuGraphInstantiate(&s->graph, graph, 0));
}

static void expect_same(const char *what, unsigned char *found,
                        unsigned char *wanted) {
  int same = memcmp(found, wanted, steps * out_bytes) == 0;
  printf("%s: %s\n", same ? "ok" : "FAIL", what);
  failures += !same;
  free(found);
}

int main(int argc, char **argv) {
  megalith_bundle *bundle;
  megalith_tensor_info info;
  struct sequence all[sequences];
  unsigned char *first[sequences], *second;
  void *cuda_context;
  int i, replay;
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: graph BUNDLE WEIGHTS.safetensors [PREFIX]\n");
    return 2;
  }
  CHECK(megalith_bundle_load(argv[1], &bundle));
  CHECK(megalith_bundle_input(bundle, &info));
  in_bytes = bytes_of(&info);
  CHECK(megalith_bundle_output(bundle, &info));
  out_bytes = bytes_of(&info);
  load();
  for (i = 0; i < sequences; ++i) {
    if (i == 0)
      CHECK(megalith_instance_create(bundle, 0, rows, &all[0].instance));
    else
      CHECK(megalith_instance_share(all[0].instance, rows, &all[i].instance));
    CHECK(megalith_set_watchdog(all[i].instance, 10000));
  }
  CUDA(cuDevicePrimaryCtxRetain(&cuda_context, 0));
  CUDA(cuCtxSetCurrent(cuda_context));
  CHECK(megalith_bind_safetensors(all[0].instance, argv[2],
                                  argc > 3 ? argv[3] : NULL));
  for (i = 0; i < sequences; ++i) {
    int step;
    CUDA(cuStreamCreate(&all[i].stream, 1));
    CUDA(cuMemAlloc(&all[i].input, in_bytes));
    for (step = 0; step < steps; ++step)
      CUDA(cuMemAlloc(&all[i].output[step], out_bytes));
    write_token(&all[i], (unsigned)i);
    first[i] = direct(&all[i]);
    capture(&all[i]);
  }

  /* Again and again from the same start. */
  for (replay = 0; replay < 3; ++replay) {
    start(&all[0]);
    CUDA(cuGraphLaunch(all[0].graph, all[0].stream));
    expect_same("a replay gives what direct steps gave", outputs(&all[0]),
                first[0]);
  }

  /* Another token at the same address. */
  write_token(&all[0], 7);
  second = direct(&all[0]);
  if (memcmp(second, first[0], steps * out_bytes) == 0) {
    printf("FAIL: another token gives the same output\n");
    ++failures;
  }
  start(&all[0]);
  CUDA(cuGraphLaunch(all[0].graph, all[0].stream));
  expect_same("a replay reads the input of its time", outputs(&all[0]), second);
  write_token(&all[0], 0);

  /* Both at once, many times, then compared. */
  for (replay = 0; replay < 50; ++replay) {
    for (i = 0; i < sequences; ++i)
      start(&all[i]);
    for (i = 0; i < sequences; ++i)
      CUDA(cuGraphLaunch(all[i].graph, all[i].stream));
  }
  for (i = 0; i < sequences; ++i)
    expect_same("two graphs on two streams", outputs(&all[i]), first[i]);

  for (i = 0; i < sequences; ++i) {
    free(first[i]);
    CHECK(megalith_instance_destroy(all[i].instance));
  }
  free(second);
  CHECK(megalith_bundle_free(bundle));
  printf("graph: %s\n", failures ? "FAIL" : "PASS");
  return failures != 0;
}
