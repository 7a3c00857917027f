// SPDX-License-Identifier: Apache-2.0

#include "KernelImage.h"

#include "Cubin.h"
#include "Error.h"
#include "ImageCache.h"
#include "mega/runtime/Nvrtc.h"

#include <cstdlib>

using namespace megalith;

namespace {

constexpr uint64_t maxImageBytes = 256ull << 20;
constexpr uint64_t maxSourceBytes = 64ull << 20;

/// The best of `targets` that `runs`: an exact one, then the newest.
template <typename Runs>
const TargetDesc *choose(const std::vector<TargetDesc> &targets, Runs runs) {
  auto rank = [](const TargetDesc &target) {
    return std::make_pair(target.exact, target.capability);
  };
  const TargetDesc *best = nullptr;
  for (const TargetDesc &target : targets)
    if (runs(target) && (!best || rank(target) > rank(*best)))
      best = &target;
  return best;
}

} // namespace

const TargetDesc *megalith::chooseTarget(const Manifest &manifest,
                                         int capability) {
  return choose(manifest.targets, [&](const TargetDesc &target) {
    return target.exact ? target.capability == capability
                        : target.capability / 10 == capability / 10 &&
                              target.capability <= capability;
  });
}

const TargetDesc *megalith::choosePtx(const Manifest &manifest,
                                      int capability) {
  return choose(manifest.ptx, [&](const TargetDesc &target) {
    return target.exact ? target.capability == capability
                        : target.capability <= capability;
  });
}

KernelImage megalith::readImage(const Bundle &bundle, const TargetDesc &target,
                                ImageOrigin origin) {
  KernelImage image;
  image.bytes = take(readBundleFile(bundle, target.file, maxImageBytes));
  image.arch = target.arch;
  image.origin = origin;
  image.label = quote(bundle.directory + "/" + target.file);
  if (origin == ImageOrigin::Ptx)
    checkPtx(image.bytes, image.label);
  else
    checkCubin(image.bytes, image.label);
  return image;
}

KernelImage megalith::compileImage(const Bundle &bundle, int capability) {
  std::string source =
      take(readBundleFile(bundle, "kernel.cu", maxSourceBytes));
  KernelImage image;
  // From 9.0 on, the suffix gives the instructions of that capability alone.
  image.arch = fmt::format("sm_{}{}", capability, capability >= 90 ? "a" : "");
  image.label = fmt::format("{} for {}", quote(bundle.directory + "/kernel.cu"),
                            image.arch);
  std::string key = fmt::format("megalith {}, nvrtc, {}\n{}", MEGALITH_VERSION,
                                image.arch, source);
  ImageCache cache = ImageCache::ofUser();
  if (std::optional<std::string> found = cache.find(key)) {
    image.bytes = std::move(*found);
    image.origin = ImageOrigin::Cached;
  } else {
    image.bytes =
        take(compileCuda(source, "kernel.cu", image.arch, NvrtcImage::Cubin))
            .image;
    image.origin = ImageOrigin::Compiled;
  }
  checkCubin(image.bytes, image.label);
  if (image.origin == ImageOrigin::Compiled)
    cache.store(key, image.bytes);
  return image;
}

bool megalith::jitAllowed() {
  const char *value = std::getenv("MEGALITH_JIT");
  std::string text = value ? value : "";
  return text != "off" && text != "0";
}
