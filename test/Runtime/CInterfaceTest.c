/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmegalith.so from plain C: queries work, and without a driver making an
 * instance is a status and not a crash. Exit status 0 is success.
 */
#include "mega/runtime/megalith.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Stops the program, showing the line and the last error. */
#define REQUIRE(condition)                                                     \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition,   \
              megalith_last_error());                                          \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static const char manifest[] =
    "{\"format\": \"megalith-bundle\", \"version\": 1, \"block\": \"b\","
    "\"kernel\": \"k\", \"input\": {\"dtype\": \"bf16\", \"shape\": [8]},"
    "\"output\": {\"dtype\": \"f32\", \"shape\": [8]},"
    "\"weights\": [{\"name\": \"n\", \"kind\": \"dense\", \"shape\": [8],"
    "\"tensors\": [{\"name\": \"n.t\", \"dtype\": \"bf16\", \"shape\": [8]}]}],"
    "\"weight_bytes\": 16, \"packed\": [{\"layout\": \"raw\", \"offset\": 0,"
    "\"bytes\": 16, \"sources\": [\"n\"]}],"
    "\"states\": [{\"name\": \"c\", \"dtype\": \"bf16\", \"shape\": [-1, 4]}],"
    "\"in_place\": true, \"workspace\": {\"bytes\": 16}, \"probes\": [],"
    "\"launch\": {\"threads\": 32, \"shared_bytes\": 0, \"max_ctas\": 1},"
    "\"targets\": []}";

int main(void) {
  char folder[] = "/tmp/megalith-c-XXXXXX";
  char path[64];
  FILE *file;
  megalith_bundle *bundle = NULL;
  megalith_instance *instance = NULL;
  megalith_tensor_info info;
  const char *text = NULL;
  size_t count = 0;
  megalith_status status;

  REQUIRE(megalith_version() == MEGALITH_VERSION);
  REQUIRE(strcmp(megalith_last_error(), "") == 0);
  REQUIRE(megalith_bundle_load("/nonexistent", &bundle) == MEGALITH_IO_ERROR);
  REQUIRE(strstr(megalith_last_error(), "/nonexistent/manifest.json"));
  REQUIRE(megalith_bundle_load(NULL, &bundle) == MEGALITH_INVALID_ARGUMENT);
  REQUIRE(bundle == NULL);

  REQUIRE(mkdtemp(folder));
  snprintf(path, sizeof(path), "%s/manifest.json", folder);
  file = fopen(path, "w");
  REQUIRE(file);
  fputs(manifest, file);
  REQUIRE(fclose(file) == 0);
  status = megalith_bundle_load(folder, &bundle);
  unlink(path);
  rmdir(folder);
  REQUIRE(status == MEGALITH_OK);

  REQUIRE(megalith_bundle_manifest(bundle, &text) == MEGALITH_OK);
  REQUIRE(strcmp(text, manifest) == 0);
  REQUIRE(megalith_bundle_block(bundle, &text) == MEGALITH_OK);
  REQUIRE(strcmp(text, "b") == 0);
  REQUIRE(megalith_bundle_input(bundle, &info) == MEGALITH_OK);
  REQUIRE(info.dtype == MEGALITH_BF16 && info.rank == 1 && info.shape[0] == 8);
  REQUIRE(megalith_bundle_output(bundle, &info) == MEGALITH_OK);
  REQUIRE(info.dtype == MEGALITH_F32);
  REQUIRE(megalith_bundle_tensor_count(bundle, &count) == MEGALITH_OK);
  REQUIRE(count == 1);
  REQUIRE(megalith_bundle_tensor(bundle, 0, &info) == MEGALITH_OK);
  REQUIRE(strcmp(info.name, "n.t") == 0);
  REQUIRE(megalith_bundle_tensor(bundle, 1, &info) == MEGALITH_NOT_FOUND);
  REQUIRE(megalith_bundle_state_count(bundle, &count) == MEGALITH_OK);
  REQUIRE(count == 1);
  REQUIRE(megalith_bundle_state(bundle, 0, &info) == MEGALITH_OK);
  REQUIRE(strcmp(info.name, "c") == 0 && info.shape[0] == -1);
  REQUIRE(megalith_bundle_probe_count(bundle, &count) == MEGALITH_OK);
  REQUIRE(count == 0);
  REQUIRE(megalith_bundle_probe(bundle, 0, &info) == MEGALITH_NOT_FOUND);

  /* The bundle has no kernel, so this fails with a driver, too. */
  status = megalith_instance_create(bundle, 0, 4, &instance);
  REQUIRE(instance == NULL);
  if (status == MEGALITH_NO_DRIVER)
    REQUIRE(strstr(megalith_last_error(), "libcuda.so.1 could not be opened"));
  else
    REQUIRE(status == MEGALITH_NO_KERNEL || status == MEGALITH_DRIVER_ERROR);
  REQUIRE(megalith_bundle_free(bundle) == MEGALITH_OK);
  REQUIRE(megalith_bundle_free(NULL) == MEGALITH_OK);
  REQUIRE(megalith_instance_destroy(NULL) == MEGALITH_OK);
  return 0;
}
