// SPDX-License-Identifier: Apache-2.0

#include "ImageCache.h"

#include "Error.h"
#include "File.h"
#include "Sha256.h"

#include <cstdlib>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

using namespace megalith;

namespace fs = std::filesystem;

namespace {

constexpr uint64_t maxEntryBytes = 1ull << 30;
constexpr std::string_view magic = "megalith-image 1\n";

/// The start of an entry: what it is, whose, and the image's digest.
std::string headerFor(std::string_view key, std::string_view image) {
  return fmt::format("{}{}\n{}\n", magic, sha256(key), sha256(image));
}

/// The value of a variable that is an absolute path, as the XDG specification
/// wants; empty for any other.
std::string absolute(const char *variable) {
  const char *value = std::getenv(variable);
  return value && value[0] == '/' ? value : "";
}

/// Makes the folder, which must be this user's alone to write: what lies there
/// is run.
void makePrivate(const std::string &directory) {
  fs::create_directories(fs::path(directory).parent_path());
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    fail(MEGALITH_IO_ERROR, "cannot create {}", quote(directory));
}

/// Whether nobody but this user and root can write the folder.
bool isPrivate(const std::string &directory) {
  struct stat info;
  return ::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 022) == 0;
}

} // namespace

std::string megalith::encodeEntry(std::string_view key,
                                  std::string_view image) {
  return headerFor(key, image).append(image);
}

std::optional<std::string> megalith::decodeEntry(std::string_view key,
                                                 std::string_view entry) {
  // Of fixed length: the magic, two digests, two line ends.
  const size_t headerBytes = magic.size() + 2 * 65;
  if (entry.size() <= headerBytes)
    return std::nullopt;
  std::string_view image = entry.substr(headerBytes);
  if (entry.substr(0, headerBytes) != headerFor(key, image))
    return std::nullopt;
  return std::string(image);
}

ImageCache ImageCache::ofUser() {
  if (const char *own = std::getenv("MEGALITH_CACHE"))
    return ImageCache(own);
  if (std::string base = absolute("XDG_CACHE_HOME"); !base.empty())
    return ImageCache(base + "/megalith");
  if (std::string home = absolute("HOME"); !home.empty())
    return ImageCache(home + "/.cache/megalith");
  return ImageCache("");
}

std::string ImageCache::pathOf(std::string_view key) const {
  return directory + "/" + sha256(key) + ".image";
}

std::optional<std::string> ImageCache::find(std::string_view key) const {
  if (directory.empty() || !isPrivate(directory))
    return std::nullopt;
  try {
    return decodeEntry(key,
                       readFile(pathOf(key), maxEntryBytes, Links::Refuse));
  } catch (const Error &) {
    return std::nullopt;
  }
}

bool ImageCache::store(std::string_view key,
                       std::string_view image) const noexcept {
  if (directory.empty())
    return false;
  try {
    makePrivate(directory);
    if (!isPrivate(directory))
      return false;
    std::string entry = encodeEntry(key, image);
    FileWriter file(pathOf(key));
    file.write(entry.data(), entry.size());
    file.commit(Durability::Synced);
    return true;
  } catch (...) {
    return false;
  }
}
