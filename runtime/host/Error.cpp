// SPDX-License-Identifier: Apache-2.0

#include "Error.h"

using namespace megalith;

Status megalith::currentExceptionStatus() noexcept {
  // Building the message may itself run out of memory; then only the code is
  // left, which says the same.
  try {
    try {
      throw;
    } catch (const Error &error) {
      return error.status;
    } catch (const std::bad_alloc &) {
      return Status(MEGALITH_RESOURCE_LIMIT, "out of host memory");
    } catch (const std::exception &error) {
      return Status(MEGALITH_INTERNAL,
                    std::string("internal error: ") + error.what());
    }
  } catch (...) {
    return Status(MEGALITH_INTERNAL, std::string());
  }
}

std::string megalith::quote(std::string_view text) {
  constexpr size_t limit = 120;
  std::string quoted = "'";
  for (unsigned char c : text.substr(0, limit)) {
    if (c < 0x20 || c >= 0x7f)
      quoted += fmt::format("\\x{:02x}", c);
    else
      quoted += char(c);
  }
  return quoted + (text.size() > limit ? "...'" : "'");
}
