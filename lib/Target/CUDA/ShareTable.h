// SPDX-License-Identifier: Apache-2.0
/// \file
/// The lists that a kernel shares out over its CTAs (share.cuh). All stages
/// look up their CTA's part in one table, which a launch computes at its start.

#ifndef MEGA_LIB_TARGET_CUDA_SHARETABLE_H
#define MEGA_LIB_TARGET_CUDA_SHARETABLE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <string>
#include <tuple>

namespace mega {

class ShareTable {
public:
  /// As Share::Of in share.cuh.
  enum class Of { Tiles, Bursts, Reversed };

  /// C expression of this CTA's Range of a list of `total`, times `scale`;
  /// equal lists are one entry.
  std::string add(int64_t total, int64_t scale, Of of);

  /// Bytes of the table in shared memory.
  int64_t bytes() const { return lists.size() * 8; }
  bool empty() const { return lists.empty(); }
  /// Defines `kShares`, the lists.
  void emit(llvm::raw_ostream &os) const;

private:
  llvm::SmallVector<std::tuple<int64_t, int64_t, Of>> lists;
};

} // namespace mega

#endif // MEGA_LIB_TARGET_CUDA_SHARETABLE_H
