// SPDX-License-Identifier: Apache-2.0
/// \file
/// The text that a kernel is compiled with: prelude/ and idioms/, embedded.

#ifndef MEGA_SIM_HOST_PRELUDE_H
#define MEGA_SIM_HOST_PRELUDE_H

#include <string_view>
#include <utility>
#include <vector>

namespace megalith::sim {

/// Pairs of relative path and text.
std::vector<std::pair<std::string_view, std::string_view>> preludeFiles();

} // namespace megalith::sim

#endif
