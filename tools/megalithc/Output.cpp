// SPDX-License-Identifier: Apache-2.0
/// \file
/// Files and bundles.

#include "Output.h"

#include "JsonFile.h"

#include "mega/Support/Json.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mega;

llvm::Expected<megalith::NvrtcProgram>
mega::compileImage(const CompiledKernel &kernel, StringRef arch,
                   megalith::NvrtcImage image) {
  megalith::Result<megalith::NvrtcProgram> program = megalith::compileCuda(
      kernel.emitted.source, "kernel.cu", arch.str(), image);
  if (!program)
    return llvm::createStringError(program.status().message());
  return std::move(*program);
}

bool mega::isBundle(StringRef path) {
  llvm::SmallString<128> manifest(path);
  llvm::sys::path::append(manifest, "manifest.json");
  auto file = llvm::MemoryBuffer::getFile(manifest);
  if (!llvm::sys::fs::is_directory(path) || !file)
    return false;
  auto value = parseJson((*file)->getBuffer(), manifest);
  if (!value) {
    llvm::consumeError(value.takeError());
    return false;
  }
  const llvm::json::Object *object = value->getAsObject();
  return object && object->getString("format") == "megalith-bundle";
}

/// Fails if `path` is something that writing a bundle must not replace.
static llvm::Error checkReplaceable(StringRef path) {
  if (!llvm::sys::fs::exists(path) || isBundle(path))
    return llvm::Error::success();
  return llvm::createStringError(
      path + " exists and is not a bundle, expected a bundle or a new name");
}

llvm::Error mega::checkOnlyBundleFiles(StringRef path) {
  std::error_code error;
  for (llvm::sys::fs::directory_iterator entry(path, error), end;
       entry != end && !error; entry.increment(error)) {
    StringRef name = llvm::sys::path::filename(entry->path());
    bool ours = name == "manifest.json" || name == "kernel.cu" ||
                (name.starts_with("kernel.") &&
                 (name.ends_with(".cubin") || name.ends_with(".ptx")));
    if (!ours)
      return llvm::createStringError(
          "bundle " + path + " also holds " + name +
          ", which replacing it would delete, expected bundle files only");
  }
  return llvm::Error::success();
}

llvm::Expected<std::string> mega::placeOfFolder(StringRef path) {
  while (path.size() > 1 && llvm::sys::path::is_separator(path.back()))
    path = path.drop_back();
  if (!llvm::sys::fs::is_symlink_file(path))
    return path.str();
  llvm::SmallString<128> place;
  if (std::error_code error = llvm::sys::fs::real_path(path, place))
    return fileError(error, "cannot follow the link " + path);
  return place.str().str();
}

llvm::Error mega::moveIntoPlace(StringRef beside, StringRef path) {
  // What is old goes only once the new one stands in its place.
  std::string old = (beside + ".old").str();
  bool replaces = llvm::sys::fs::exists(path);
  if (replaces)
    if (std::error_code error = llvm::sys::fs::rename(path, old))
      return fileError(error, "cannot rename " + path + " to " + old);
  if (std::error_code error = llvm::sys::fs::rename(beside, path)) {
    if (replaces)
      llvm::sys::fs::rename(old, path);
    return fileError(error, "cannot rename " + beside + " to " + path);
  }
  if (replaces)
    llvm::sys::fs::remove_directories(old);
  return llvm::Error::success();
}

llvm::Error mega::writeBundle(StringRef wanted, CompiledKernel &kernel,
                              ArrayRef<std::string> archs,
                              ArrayRef<std::string> ptxArchs) {
  llvm::Expected<std::string> place = placeOfFolder(wanted);
  if (!place)
    return place.takeError();
  StringRef path = *place;
  if (llvm::Error error = checkReplaceable(path))
    return error;
  if (llvm::sys::fs::is_directory(path))
    if (llvm::Error error = checkOnlyBundleFiles(path))
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
  llvm::json::Array ptx;
  for (const std::string &arch : ptxArchs) {
    // NVRTC is asked for the same architecture under its other name.
    std::string sm = "sm_" + StringRef(arch).split('_').second.str();
    auto program = compileImage(kernel, sm, megalith::NvrtcImage::Ptx);
    if (!program)
      return program.takeError();
    std::string file = "kernel." + arch + ".ptx";
    ptx.push_back(llvm::json::Object{{"arch", arch}, {"file", file}});
    files.emplace_back(file, std::move(program->image));
  }
  files.emplace_back("kernel.cu", kernel.emitted.source);
  llvm::json::Object manifest = makeManifest(
      kernel.kernel, kernel.facts(), targets, std::move(kernel.relaxations));
  if (!ptx.empty())
    manifest["ptx"] = std::move(ptx);
  llvm::json::Object digests;
  for (const auto &[name, content] : files)
    digests[name] =
        llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(content)),
                    /*LowerCase=*/true);
  manifest["files"] = std::move(digests);
  files.emplace_back(
      "manifest.json",
      llvm::formatv("{0:2}\n", llvm::json::Value(std::move(manifest))).str());

  // Beside the target, so that the final rename is one step.
  llvm::SmallString<128> beside;
  llvm::sys::fs::createUniquePath(path + ".%%%%%%%%.tmp", beside,
                                  /*MakeAbsolute=*/false);
  if (std::error_code error = llvm::sys::fs::create_directories(beside))
    return fileError(error, "cannot create " + beside);
  llvm::scope_exit cleanUp([&] { llvm::sys::fs::remove_directories(beside); });
  for (auto &[name, content] : files) {
    llvm::SmallString<128> file(beside);
    llvm::sys::path::append(file, name);
    if (llvm::Error error = writeFile(file, content))
      return error;
  }
  if (llvm::Error error = moveIntoPlace(beside, path))
    return error;
  cleanUp.release();
  return llvm::Error::success();
}
