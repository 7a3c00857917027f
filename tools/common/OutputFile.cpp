// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes files, and tells what went wrong.

#include "OutputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <unistd.h>

using namespace mega;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

llvm::Error mega::fileError(std::error_code cause, const llvm::Twine &what) {
  return llvm::createStringError(cause, what + ": " + cause.message());
}

/// Writes all of `text`; a stream that is destroyed with an error ends the
/// program, so it is taken off it.
static std::error_code writeAll(int descriptor, bool close, StringRef text) {
  llvm::raw_fd_ostream os(descriptor, close);
  os << text;
  os.flush();
  std::error_code error = os.error();
  os.clear_error();
  return error;
}

/// Beside the file, then in its place.
static llvm::Error replaceFile(StringRef path, StringRef text) {
  auto temporary = fs::TempFile::create(path + ".%%%%%%%%.tmp",
                                        fs::all_read | fs::all_write);
  if (!temporary)
    return fileError(llvm::errorToErrorCode(temporary.takeError()),
                     "cannot write " + path);
  if (std::error_code error = writeAll(temporary->FD, /*close=*/false, text)) {
    llvm::consumeError(temporary->discard());
    return fileError(error, "cannot write " + path);
  }
  if (llvm::Error error = temporary->keep(path))
    return fileError(llvm::errorToErrorCode(std::move(error)),
                     "cannot write " + path);
  return llvm::Error::success();
}

/// Into what is there.
static llvm::Error writeThrough(StringRef path, StringRef text) {
  int descriptor;
  std::error_code error = fs::openFileForWrite(path, descriptor);
  if (!error)
    error = writeAll(descriptor, /*close=*/true, text);
  if (error)
    return fileError(error, "cannot write " + path);
  return llvm::Error::success();
}

llvm::Error mega::writeFile(StringRef path, StringRef text) {
  if (path == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    std::error_code error = llvm::outs().error();
    llvm::outs().clear_error();
    if (error)
      return fileError(error, "cannot write standard output");
    return llvm::Error::success();
  }
  fs::file_status status;
  fs::status(path, status);
  if (status.type() == fs::file_type::directory_file)
    return llvm::createStringError("cannot write " + path +
                                   ": it is a folder, expected a file");
  bool there = fs::exists(status), link = fs::is_symlink_file(path);
  if (there ? status.type() != fs::file_type::regular_file : link)
    return writeThrough(path, text);
  llvm::SmallString<128> target(path);
  if (link)
    if (std::error_code error = fs::real_path(path, target))
      return fileError(error, "cannot write " + path);
  return replaceFile(target, text);
}

void mega::checkStandardOutput(const char *tool) {
  static const char *name;
  name = tool;
  // Made before the check, so that they go after it.
  llvm::outs();
  llvm::errs();
  std::atexit([] {
    llvm::outs().flush();
    if (!llvm::outs().has_error())
      return;
    llvm::errs() << name << ": error: cannot write standard output: "
                 << llvm::outs().error().message() << "\n";
    std::_Exit(1);
  });
}
