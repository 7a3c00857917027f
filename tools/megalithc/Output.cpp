// SPDX-License-Identifier: Apache-2.0
/// \file
/// Files and bundles.

#include "Output.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mega;

llvm::Error mega::writeFile(StringRef path, StringRef text) {
  if (path == "-") {
    llvm::outs() << text;
    return llvm::Error::success();
  }
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    os << text;
    return llvm::Error::success();
  });
}

llvm::Expected<megalith::NvrtcProgram>
mega::compileImage(const CompiledKernel &kernel, StringRef arch,
                   megalith::NvrtcImage image) {
  megalith::Result<megalith::NvrtcProgram> program = megalith::compileCuda(
      kernel.emitted.source, "kernel.cu", arch.str(), image);
  if (!program)
    return llvm::createStringError(program.status().message());
  return std::move(*program);
}

/// Fails if `path` is something that writing a bundle must not replace.
static llvm::Error checkReplaceable(StringRef path) {
  if (!llvm::sys::fs::exists(path))
    return llvm::Error::success();
  llvm::SmallString<128> manifest(path);
  llvm::sys::path::append(manifest, "manifest.json");
  if (llvm::sys::fs::is_directory(path) && llvm::sys::fs::exists(manifest))
    return llvm::Error::success();
  return llvm::createStringError(
      path + " exists and is not a bundle, expected a bundle or a new name");
}

llvm::Error mega::writeBundle(StringRef path, CompiledKernel &kernel,
                              ArrayRef<std::string> archs) {
  if (llvm::Error error = checkReplaceable(path))
    return error;
  // Compile everything before the first byte is written.
  SmallVector<CompiledTarget> targets;
  SmallVector<std::pair<std::string, std::string>> files;
  for (const std::string &arch : archs) {
    auto program = compileImage(kernel, arch, megalith::NvrtcImage::Cubin);
    if (!program)
      return program.takeError();
    std::string file = "kernel." + arch + ".cubin";
    targets.push_back({arch, file, program->registers, program->spillBytes,
                       program->stackBytes});
    files.emplace_back(file, std::move(program->image));
  }
  llvm::json::Value manifest =
      makeManifest(kernel.kernel, kernel.facts(), targets,
                   std::move(kernel.relaxations));
  files.emplace_back("manifest.json",
                     llvm::formatv("{0:2}\n", manifest).str());
  files.emplace_back("kernel.cu", kernel.emitted.source);

  // Beside the target, so that the final rename is one step.
  std::string beside = path.str() + ".tmp";
  if (std::error_code error = llvm::sys::fs::create_directories(beside))
    return llvm::createStringError(error, "cannot create " + beside);
  for (auto &[name, content] : files) {
    llvm::SmallString<128> file(beside);
    llvm::sys::path::append(file, name);
    if (llvm::Error error = writeFile(file, content))
      return error;
  }
  llvm::sys::fs::remove_directories(path);
  if (std::error_code error = llvm::sys::fs::rename(beside, path))
    return llvm::createStringError(error, "cannot rename " + beside + " to " +
                                              path);
  return llvm::Error::success();
}
