// SPDX-License-Identifier: Apache-2.0
//
// Whole files: read, mapped, or replaced. Errors are thrown (IO_ERROR).

#ifndef MEGA_RUNTIME_HOST_FILE_H
#define MEGA_RUNTIME_HOST_FILE_H

#include <cstdint>
#include <memory>
#include <string>

namespace megalith {

/// Whether a path may name a symbolic link.
enum class Links { Follow, Refuse };

/// A regular file's contents; at most `limit` bytes, else BAD_FORMAT. Links
/// are about the last part of the path.
std::string readFile(const std::string &path, uint64_t limit,
                     Links links = Links::Follow);

/// A read-only private mapping of a regular file, unmapped with the object.
class MappedFile {
public:
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  /// Null if the file is empty.
  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return length; }

private:
  const uint8_t *bytes = nullptr;
  uint64_t length = 0;
};

/// Whether a file must survive a crash of the machine right after commit.
enum class Durability { Ordinary, Synced };

/// A file written beside `path` and moved over it by commit; removed if it is
/// not committed. A link is replaced, or, with Links::Follow, keeps its place
/// and what it names is written; then a device or a pipe is written as it is.
class FileWriter {
public:
  explicit FileWriter(const std::string &path, Links links = Links::Refuse);
  ~FileWriter();
  FileWriter(const FileWriter &) = delete;
  FileWriter &operator=(const FileWriter &) = delete;

  void write(const void *data, uint64_t bytes);
  /// Synced: the file's bytes are on the disk before its name is.
  void commit(Durability durability = Durability::Ordinary);

private:
  void openBeside();
  /// True if `path` is now open, since it is no regular file.
  bool openInPlace();

  std::string path;
  std::string temporary; ///< empty for what is written in place
  int descriptor = -1;
};

} // namespace megalith

#endif
