// SPDX-License-Identifier: Apache-2.0
//
// Failures inside the runtime are exceptions; they become a Status at the
// public functions and never pass them.

#ifndef MEGA_RUNTIME_HOST_ERROR_H
#define MEGA_RUNTIME_HOST_ERROR_H

#include "mega/runtime/Status.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace megalith {

/// A Status in flight.
class Error : public std::exception {
public:
  explicit Error(Status status) : status(std::move(status)) {}
  const char *what() const noexcept override {
    return status.message().c_str();
  }
  Status status;
};

/// Throws an Error with a formatted message.
template <typename... Args>
[[noreturn]] void fail(megalith_status code, fmt::format_string<Args...> format,
                       Args &&...args) {
  throw Error(Status(code, fmt::format(format, std::forward<Args>(args)...)));
}

/// Throws the status if it is a failure.
inline void check(Status status) {
  if (!status.ok())
    throw Error(std::move(status));
}

/// The value, or throws the status.
template <typename T> T take(Result<T> result) {
  if (!result)
    throw Error(result.status());
  return std::move(*result);
}

/// The exception being handled, as a status. Call in a catch block only.
Status currentExceptionStatus() noexcept;

/// Runs `body` (returning nothing) and turns what it throws into a status.
template <typename Body> Status guard(Body &&body) noexcept {
  try {
    body();
    return Status();
  } catch (...) {
    return currentExceptionStatus();
  }
}

/// As guard, for a body that returns a `T`.
template <typename T, typename Body>
Result<T> guardResult(Body &&body) noexcept {
  try {
    return Result<T>(body());
  } catch (...) {
    return Result<T>(currentExceptionStatus());
  }
}

/// A name from a file or caller for a message: in single quotes, cut at 120
/// bytes, control characters and non-ASCII bytes as \xNN.
std::string quote(std::string_view text);

} // namespace megalith

#endif
