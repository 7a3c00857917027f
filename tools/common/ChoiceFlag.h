// SPDX-License-Identifier: Apache-2.0
/// \file
/// Flags with a few named values, and limits that several tools have.

#ifndef MEGALITH_TOOLS_CHOICEFLAG_H
#define MEGALITH_TOOLS_CHOICEFLAG_H

#include "llvm/Support/CommandLine.h"

#include <cstdint>
#include <string>

namespace mega {

/// Rows in a cache before a step: kernels count them in 32 bits, and the
/// runtime takes a token behind no more than these.
inline constexpr int64_t kMaxContext = INT32_MAX - 2;

/// LLVM's parser of named values, with a message that says which there are.
template <typename T> class ChoiceParser : public llvm::cl::parser<T> {
public:
  using llvm::cl::parser<T>::parser;

  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text,
             T &value) {
    std::string known;
    for (const auto &choice : this->Values) {
      if (choice.Name == text) {
        value = choice.V.getValue();
        return false;
      }
      known += (known.empty() ? "" : ", ") + choice.Name.str();
    }
    return option.error("found '" + text + "', expected one of " + known);
  }
};

template <typename T>
using ChoiceFlag = llvm::cl::opt<T, /*ExternalStorage=*/false, ChoiceParser<T>>;

} // namespace mega

#endif // MEGALITH_TOOLS_CHOICEFLAG_H
