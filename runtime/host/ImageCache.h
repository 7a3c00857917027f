// SPDX-License-Identifier: Apache-2.0
//
// Images that took long to make, kept in the user's cache directory by what
// they were made from. Any number of processes may read and write at once: an
// entry is written beside its place, synced, and renamed over it; a reader
// checks all of it, and takes anything that is not whole for missing.

#ifndef MEGA_RUNTIME_HOST_IMAGECACHE_H
#define MEGA_RUNTIME_HOST_IMAGECACHE_H

#include <optional>
#include <string>
#include <string_view>

namespace megalith {

class ImageCache {
public:
  /// A cache in `directory`, which is made when something is stored; empty
  /// means a cache that keeps nothing.
  explicit ImageCache(std::string directory)
      : directory(std::move(directory)) {}

  /// The user's: $MEGALITH_CACHE if set (empty for none), else
  /// $XDG_CACHE_HOME/megalith, else $HOME/.cache/megalith, else none.
  static ImageCache ofUser();

  /// The image stored under `key`, whole; nothing if there is none.
  std::optional<std::string> find(std::string_view key) const;

  /// Keeps an image. A cache that cannot be written is no error: false, and
  /// the image is made again next time.
  bool store(std::string_view key, std::string_view image) const noexcept;

  /// Where the entry of `key` is or would be.
  std::string pathOf(std::string_view key) const;

private:
  std::string directory;
};

/// An entry's bytes: a header with the key and digests, then the image.
std::string encodeEntry(std::string_view key, std::string_view image);

/// The image of an entry that is whole and belongs to `key`.
std::optional<std::string> decodeEntry(std::string_view key,
                                       std::string_view entry);

} // namespace megalith

#endif
