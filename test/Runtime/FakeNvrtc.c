/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvrtc whose image is the file $FAKE_NVRTC_IMAGE, and which appends a
 * line to $FAKE_NVRTC_LOG for each compilation: the architecture.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static char image[1 << 16];
static size_t imageBytes;

EXPORT int nvrtcCreateProgram(void **program, const char *source,
                              const char *name, int headers,
                              const char *const *texts,
                              const char *const *names) {
  (void)name, (void)headers, (void)texts, (void)names;
  *program = (void *)source;
  return 0;
}

EXPORT int nvrtcDestroyProgram(void **program) {
  *program = NULL;
  return 0;
}

EXPORT int nvrtcCompileProgram(void *program, int count,
                               const char *const *options) {
  FILE *file = fopen(getenv("FAKE_NVRTC_LOG"), "a");
  if (!file)
    return 1;
  for (int i = 0; i < count; ++i)
    if (strncmp(options[i], "--gpu-architecture=", 19) == 0)
      fprintf(file, "%s\n", options[i] + 19);
  fclose(file);
  if (strstr((const char *)program, "syntax error"))
    return 6;
  file = fopen(getenv("FAKE_NVRTC_IMAGE"), "rb");
  if (!file)
    return 1;
  imageBytes = fread(image, 1, sizeof image, file);
  fclose(file);
  return 0;
}

EXPORT int nvrtcGetProgramLogSize(void *program, size_t *bytes) {
  (void)program;
  *bytes = 9;
  return 0;
}

EXPORT int nvrtcGetProgramLog(void *program, char *log) {
  (void)program;
  memcpy(log, "fake log", 9);
  return 0;
}

EXPORT int nvrtcGetCUBINSize(void *program, size_t *bytes) {
  (void)program;
  *bytes = imageBytes;
  return 0;
}

EXPORT int nvrtcGetCUBIN(void *program, char *to) {
  (void)program;
  memcpy(to, image, imageBytes);
  return 0;
}

EXPORT int nvrtcGetPTXSize(void *program, size_t *bytes) {
  return nvrtcGetCUBINSize(program, bytes);
}

EXPORT int nvrtcGetPTX(void *program, char *to) {
  return nvrtcGetCUBIN(program, to);
}

EXPORT const char *nvrtcGetErrorString(int error) {
  (void)error;
  return "FAKE_NVRTC_ERROR";
}
