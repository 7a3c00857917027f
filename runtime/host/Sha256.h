// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), as lower-case hexadecimal digits: says that a file is
// the one that was meant.

#ifndef MEGA_RUNTIME_HOST_SHA256_H
#define MEGA_RUNTIME_HOST_SHA256_H

#include <string>
#include <string_view>

namespace megalith {

/// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

} // namespace megalith

#endif
