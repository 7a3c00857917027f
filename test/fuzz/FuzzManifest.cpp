// SPDX-License-Identifier: Apache-2.0
//
// A manifest, and everything that trusts what it says.

#include "FakeDriver.h"
#include "HangReport.h"
#include "KernelImage.h"
#include "Support.h"

#include "mega/runtime/Instance.h"
#include "mega/runtime/RandomInit.h"
#include "mega/runtime/Repack.h"

#include <cstdint>
#include <cstdlib>

using namespace megalith;

namespace {

/// Sizes that are worth the time.
constexpr uint64_t small = 1 << 16;

/// The files that seeds name, for instances to load.
const std::string &folder() {
  static const TemporaryFolder made;
  static const bool filled = [] {
    writeText(made / "kernel.sm_80.cubin", sampleCubin("sm_80"));
    writeText(made / "kernel.sm_90a.cubin", sampleCubin("sm_90a"));
    return true;
  }();
  (void)filled;
  return made.path;
}

/// Packs random weights if there are few.
void pack(const Manifest &manifest) {
  uint64_t bytes = manifest.weightBytes;
  for (const WeightDesc &weight : manifest.weights)
    for (const TensorDesc &tensor : weight.tensors)
      if (__builtin_add_overflow(bytes, tensor.bytes, &bytes))
        return;
  if (bytes > small)
    return;
  Result<TensorMap> weights = randomWeights(manifest, 1, 1);
  if (!weights)
    return;
  std::vector<uint8_t> arena(manifest.weightBytes);
  // A manifest may want dtypes that random weights do not have.
  (void)packWeights(manifest, *weights, arena.data());
}

/// Makes an instance on a fake device with little memory.
void instantiate(std::shared_ptr<const Bundle> bundle) {
  FakeDriverScope driver;
  driver.device.memoryLimit = small;
  for (int64_t rows : {int64_t(0), int64_t(3), INT64_MAX}) {
    auto instance = Instance::create(bundle, 0, rows);
    if (!instance)
      continue;
    (void)(*instance)->weightsReady();
    (void)(*instance)->setPosition(2);
    (void)(*instance)->reset();
    auto shared = (*instance)->share(1);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto bundle = std::make_shared<Bundle>();
  bundle->text.assign(reinterpret_cast<const char *>(data), size);
  Result<Manifest> manifest = parseManifest(bundle->text, "manifest");
  if (!manifest)
    return 0;
  bundle->manifest = std::move(*manifest);
  bundle->directory = folder();
  for (int capability : {75, 80, 90, 103, 120}) {
    (void)chooseTarget(bundle->manifest, capability);
    (void)choosePtx(bundle->manifest, capability);
  }
  pack(bundle->manifest);
  if (bundle->manifest.workspaceBytes <= small)
    (void)describeHang(
        bundle->manifest, bundle->manifest.maxCtas,
        std::vector<uint8_t>(bundle->manifest.workspaceBytes, 0x7f));
  // No compiler and no cache of the user's.
  ::setenv("MEGALITH_JIT", "off", 1);
  instantiate(bundle);
  return 0;
}
