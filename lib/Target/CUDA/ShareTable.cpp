// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collects lists, and prints them.

#include "ShareTable.h"

#include "llvm/ADT/STLExtras.h"

using namespace mega;

std::string ShareTable::add(int64_t total, int64_t scale, Of of) {
  auto list = std::make_tuple(total, scale, of);
  auto *at = llvm::find(lists, list);
  size_t index = at - lists.begin();
  if (at == lists.end())
    lists.push_back(list);
  return "ranges[" + std::to_string(index) + "]";
}

void ShareTable::emit(llvm::raw_ostream &os) const {
  static constexpr llvm::StringLiteral names[] = {"kTiles", "kBursts",
                                                  "kReversed"};
  os << "/// Lists that CTAs share out; ranges[i] is a CTA's part of list i.\n"
        "__device__ const mega::Share kShares[] = {\n";
  for (auto [total, scale, of] : lists)
    os << "    {" << total << ", " << scale
       << ", mega::Share::" << names[size_t(of)] << "},\n";
  os << "};\n\n";
}
