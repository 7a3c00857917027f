// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collects what a torch module needs into one folder.

#include "TorchFolder.h"

#include "JsonFile.h"
#include "Output.h"

#include "mega/Target/Torch.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mega;
namespace fs = llvm::sys::fs;

static constexpr StringRef kLibraryName = "libmegalith.so";

static std::string inside(StringRef folder, const Twine &name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

llvm::Expected<std::string> mega::findRuntimeLibrary(StringRef given,
                                                     const char *argv0) {
  if (!given.empty()) {
    if (fs::exists(given) && !fs::is_directory(given))
      return given.str();
    return llvm::createStringError("no runtime library " + given +
                                   ", expected a path of " + kLibraryName);
  }
  static int anchor;
  std::string program = fs::getMainExecutable(argv0, &anchor);
  StringRef folder = llvm::sys::path::parent_path(program);
  // A build tree, then what CMake installs.
  for (StringRef place : {"../runtime", MEGALITH_LIBRARY_FROM_BIN}) {
    std::string path = inside(inside(folder, place), kLibraryName);
    if (fs::exists(path))
      return path;
  }
  return llvm::createStringError(Twine("no ") + kLibraryName +
                                 " in ../runtime or " +
                                 MEGALITH_LIBRARY_FROM_BIN + " beside " +
                                 program + ", expected --runtime-library=PATH");
}

/// Fails unless a Python statement can import the folder by its name: of ASCII,
/// what an identifier has, and no keyword.
static llvm::Error checkImportable(StringRef path) {
  llvm::SmallString<128> whole(path);
  if (std::error_code error = fs::make_absolute(whole))
    return fileError(error, "cannot find " + path);
  llvm::sys::path::remove_dots(whole, /*remove_dot_dot=*/true);
  StringRef name = llvm::sys::path::filename(whole);
  static constexpr StringRef keywords[] = {
      "False",  "None",   "True",    "and",      "as",       "assert", "async",
      "await",  "break",  "class",   "continue", "def",      "del",    "elif",
      "else",   "except", "finally", "for",      "from",     "global", "if",
      "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
      "pass",   "raise",  "return",  "try",      "while",    "with",   "yield"};
  if (llvm::is_contained(keywords, name))
    return llvm::createStringError(
        "folder name '" + name +
        "' is a word of Python's, expected a name that it can import");
  auto fits = [](char c) {
    return llvm::isAlnum(c) || c == '_' || !llvm::isASCII(c);
  };
  if (name.empty() || llvm::isDigit(name.front()) || !llvm::all_of(name, fits))
    return llvm::createStringError(
        "folder name '" + name +
        "' is no name that Python can import, expected letters, digits and _, "
        "and no digit first");
  return llvm::Error::success();
}

/// Fails if `path` holds an entry that is none of `names`.
static llvm::Error checkOnly(StringRef path, ArrayRef<StringRef> names) {
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; entry != end && !error;
       entry.increment(error)) {
    StringRef name = llvm::sys::path::filename(entry->path());
    if (name != "__pycache__" && !llvm::is_contained(names, name))
      return llvm::createStringError(
          "folder " + path + " also holds " + name +
          ", which replacing it would delete, expected a torch module's files "
          "only");
  }
  return llvm::Error::success();
}

/// Fails if `path` is something that this must not replace.
static llvm::Error checkReplaceable(StringRef path) {
  if (!fs::exists(path))
    return llvm::Error::success();
  std::string bundle = inside(path, "bundle"),
              package = inside(path, "megalith");
  if (!isBundle(bundle) || !fs::exists(inside(path, "module.py")))
    return llvm::createStringError(
        path + " exists and is not a torch module's folder, expected one or a "
               "new name");
  SmallVector<StringRef> files{kLibraryName};
  for (auto [name, text] : pythonPackage())
    files.push_back(name);
  if (llvm::Error error =
          checkOnly(path, {"__init__.py", "module.py", "bundle", "megalith"}))
    return error;
  if (llvm::Error error = checkOnlyBundleFiles(bundle))
    return error;
  return checkOnly(package, files);
}

llvm::Error mega::writeTorchFolder(StringRef wanted, ModuleOp block,
                                   StringRef source, CompiledKernel &kernel,
                                   ArrayRef<std::string> archs,
                                   ArrayRef<std::string> ptxArchs,
                                   StringRef library) {
  // The name that is imported is the link's.
  if (llvm::Error error = checkImportable(wanted))
    return error;
  llvm::Expected<std::string> place = placeOfFolder(wanted);
  if (!place)
    return place.takeError();
  StringRef path = *place;
  if (llvm::Error error = checkReplaceable(path))
    return error;
  FailureOr<TorchModule> module = emitTorchModule(block, source);
  // Diagnostics have said what is wrong.
  if (failed(module))
    return llvm::createStringError("cannot write " + source +
                                   " as a torch module");

  llvm::SmallString<128> beside;
  fs::createUniquePath(path + ".%%%%%%%%.tmp", beside, /*MakeAbsolute=*/false);
  std::string package = inside(beside, "megalith");
  if (std::error_code error = fs::create_directories(package))
    return fileError(error, "cannot create " + package);
  llvm::scope_exit cleanUp([&] { fs::remove_directories(beside); });
  if (llvm::Error error =
          writeFile(inside(beside, "module.py"), module->module))
    return error;
  if (llvm::Error error =
          writeFile(inside(beside, "__init__.py"), module->init))
    return error;
  for (auto [name, text] : pythonPackage())
    if (llvm::Error error = writeFile(inside(package, StringRef(name)), text))
      return error;
  std::string target = inside(package, kLibraryName);
  if (std::error_code error = fs::copy_file(library, target))
    return fileError(error, "cannot copy " + library + " to " + target);
  if (llvm::Error error =
          writeBundle(inside(beside, "bundle"), kernel, archs, ptxArchs))
    return error;
  if (llvm::Error error = moveIntoPlace(beside, path))
    return error;
  cleanUp.release();
  return llvm::Error::success();
}
