// SPDX-License-Identifier: Apache-2.0
/// \file
/// What megalithc writes: text, images, bundles.

#ifndef MEGALITH_TOOLS_OUTPUT_H
#define MEGALITH_TOOLS_OUTPUT_H

#include "Compile.h"
#include "JsonFile.h"

#include "mega/runtime/Nvrtc.h"

#include "llvm/Support/Error.h"

namespace mega {

/// The kernel as one architecture's cubin, or as PTX text.
llvm::Expected<megalith::NvrtcProgram>
compileImage(const CompiledKernel &kernel, llvm::StringRef arch,
             megalith::NvrtcImage image);

/// True if `path` is a directory with a bundle's manifest. A manifest.json of
/// anything else does not make its folder ours to delete.
bool isBundle(llvm::StringRef path);

/// Fails if the bundle `path` holds a file that no bundle has.
llvm::Error checkOnlyBundleFiles(llvm::StringRef path);

/// Where a folder that is to be `path` goes: less separators at the end, for
/// what lies beside it must not start inside; and if it is a link, what that
/// names, for replacing the link would empty what it names.
llvm::Expected<std::string> placeOfFolder(llvm::StringRef path);

/// Renames the folder `beside` to `path`, in place of what is there.
llvm::Error moveIntoPlace(llvm::StringRef beside, llvm::StringRef path);

/// Writes a bundle directory (docs/bundle-format.md) with one cubin for each of
/// `archs` ("sm_90a") and one PTX text for each of `ptxArchs` ("compute_80"),
/// all from the same source. The directory appears whole or not at
/// all; one that is there and is a bundle is replaced.
llvm::Error writeBundle(llvm::StringRef path, CompiledKernel &kernel,
                        llvm::ArrayRef<std::string> archs,
                        llvm::ArrayRef<std::string> ptxArchs = {});

} // namespace mega

#endif // MEGALITH_TOOLS_OUTPUT_H
