// SPDX-License-Identifier: Apache-2.0
//
// Whole files: read, mapped, or replaced. Errors are thrown (IO_ERROR).

#ifndef MEGA_RUNTIME_HOST_FILE_H
#define MEGA_RUNTIME_HOST_FILE_H

#include <cstdint>
#include <memory>
#include <string>

namespace megalith {

/// A file's contents; at most `limit` bytes, else BAD_FORMAT.
std::string readFile(const std::string &path, uint64_t limit);

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

/// A file written beside `path` and moved over it by commit; removed if it is
/// not committed.
class FileWriter {
public:
  explicit FileWriter(const std::string &path);
  ~FileWriter();
  FileWriter(const FileWriter &) = delete;
  FileWriter &operator=(const FileWriter &) = delete;

  void write(const void *data, uint64_t bytes);
  void commit();

private:
  std::string path;
  std::string temporary;
  int descriptor = -1;
};

} // namespace megalith

#endif
