// SPDX-License-Identifier: Apache-2.0

#include "File.h"

#include "Error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace megalith;

namespace {

/// Throws IO_ERROR with errno's text.
[[noreturn]] void failErrno(const char *action, const std::string &path) {
  int code = errno;
  fail(MEGALITH_IO_ERROR, "cannot {} {}: {}", action, quote(path),
       std::strerror(code));
}

/// A file descriptor closed with the object.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0)
      ::close(value);
  }
};

/// Opens a regular file for reading and returns its size.
Descriptor openRegular(const std::string &path, uint64_t &size,
                       Links links = Links::Follow) {
  // Without O_NONBLOCK the open itself would wait on a FIFO.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  if (links == Links::Refuse)
    flags |= O_NOFOLLOW;
  int value = ::open(path.c_str(), flags);
  if (value < 0 && errno == ELOOP && links == Links::Refuse)
    fail(MEGALITH_IO_ERROR, "{} is a symbolic link, expected a regular file",
         quote(path));
  if (value < 0)
    failErrno("open", path);
  Descriptor descriptor{value};
  struct stat info;
  if (::fstat(value, &info) != 0)
    failErrno("stat", path);
  if (!S_ISREG(info.st_mode))
    fail(MEGALITH_IO_ERROR, "{} is not a regular file", quote(path));
  size = uint64_t(info.st_size);
  return Descriptor{std::exchange(descriptor.value, -1)};
}

} // namespace

std::string megalith::readFile(const std::string &path, uint64_t limit,
                               Links links) {
  uint64_t size = 0;
  Descriptor descriptor = openRegular(path, size, links);
  if (size > limit)
    fail(MEGALITH_BAD_FORMAT, "{} has {} bytes, at most {} are allowed",
         quote(path), size, limit);
  std::string contents(size, '\0');
  uint64_t done = 0;
  while (done < size) {
    ssize_t got = ::read(descriptor.value, &contents[done], size - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      failErrno("read", path);
    if (got == 0)
      fail(MEGALITH_IO_ERROR, "{} ended after {} of {} bytes", quote(path),
           done, size);
    done += uint64_t(got);
  }
  return contents;
}

MappedFile::MappedFile(const std::string &path) {
  Descriptor descriptor = openRegular(path, length);
  if (length == 0)
    return;
  void *address =
      ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor.value, 0);
  if (address == MAP_FAILED)
    failErrno("map", path);
  bytes = static_cast<const uint8_t *>(address);
}

MappedFile::~MappedFile() {
  if (bytes)
    ::munmap(const_cast<uint8_t *>(bytes), length);
}

FileWriter::FileWriter(const std::string &path, Links links) : path(path) {
  if (links == Links::Refuse || !openInPlace())
    openBeside();
}

bool FileWriter::openInPlace() {
  struct stat info;
  bool link = ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
  bool there = ::stat(path.c_str(), &info) == 0;
  if (there && S_ISREG(info.st_mode)) {
    if (char *target = link ? ::realpath(path.c_str(), nullptr) : nullptr) {
      path = target;
      std::free(target);
    }
    return false;
  }
  // A link to nothing makes what it names.
  if (!there && !link)
    return false;
  int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  descriptor = ::open(path.c_str(), flags, 0644);
  if (descriptor < 0)
    failErrno("write", path);
  return true;
}

void FileWriter::openBeside() {
  // Unique, so that two writers of one path cannot mix their bytes.
  temporary = path + ".XXXXXX";
  descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0)
    failErrno("create a file beside", path);
  // mkostemp makes it private, and the process's umask cannot be read safely.
  ::fchmod(descriptor, 0644);
}

FileWriter::~FileWriter() {
  if (descriptor < 0)
    return;
  ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

void FileWriter::write(const void *data, uint64_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t put = ::write(descriptor, next, bytes);
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      failErrno("write", temporary.empty() ? path : temporary);
    next += put;
    bytes -= uint64_t(put);
  }
}

void FileWriter::commit(Durability durability) {
  // A device or a pipe has no name to move and nothing to sync.
  if (temporary.empty()) {
    if (::close(std::exchange(descriptor, -1)) != 0)
      failErrno("write", path);
    return;
  }
  if (durability == Durability::Synced && ::fsync(descriptor) != 0)
    failErrno("sync", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    failErrno("replace", path);
  ::close(std::exchange(descriptor, -1));
}
