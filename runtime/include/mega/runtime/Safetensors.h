// SPDX-License-Identifier: Apache-2.0
//
// Safetensors files. Format: u64 little-endian header length, a JSON header,
// one byte buffer that the tensors tile without gap or overlap.

#ifndef MEGA_RUNTIME_SAFETENSORS_H
#define MEGA_RUNTIME_SAFETENSORS_H

#include "mega/runtime/Status.h"
#include "mega/runtime/TensorMap.h"

#include <memory>
#include <string>

namespace megalith {

/// Maps a file and returns views into it; the mapping lives as long as any of
/// its tensors. IO_ERROR; BAD_FORMAT for anything the format forbids.
Result<TensorMap> readSafetensors(const std::string &path);

/// As readSafetensors, for `size` bytes at `data` that `owner` keeps alive.
/// `label` stands for the file's name in messages.
Result<TensorMap> parseSafetensors(const std::string &label,
                                   std::shared_ptr<const void> owner,
                                   const uint8_t *data, uint64_t size);

/// Writes a file, tensors by descending element size and then name, the
/// header padded so that each is aligned to its elements. Same map, same
/// bytes. Replaces `path` only once all is written. IO_ERROR,
/// INVALID_ARGUMENT (a tensor whose bytes do not fit its shape).
Status writeSafetensors(const std::string &path, const TensorMap &map);

} // namespace megalith

#endif
