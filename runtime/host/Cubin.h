// SPDX-License-Identifier: Apache-2.0
//
// A look at a GPU image before the driver gets it. cuModuleLoadData takes an
// address and no size: it reads as far as the image's own headers say.

#ifndef MEGA_RUNTIME_HOST_CUBIN_H
#define MEGA_RUNTIME_HOST_CUBIN_H

#include <string>
#include <string_view>

namespace megalith {

/// Throws BAD_FORMAT, starting with `label`, unless `bytes` is a 64-bit ELF
/// file for CUDA all of whose headers, segments and sections lie inside it.
void checkCubin(std::string_view bytes, const std::string &label);

/// Throws BAD_FORMAT unless `text` is PTX: text without NUL that has a
/// .version directive.
void checkPtx(std::string_view text, const std::string &label);

} // namespace megalith

#endif
