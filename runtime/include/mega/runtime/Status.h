// SPDX-License-Identifier: Apache-2.0
//
// Value-or-error types of the C++ interface. They never throw, so that code
// built without exceptions can include every header of this folder.

#ifndef MEGA_RUNTIME_STATUS_H
#define MEGA_RUNTIME_STATUS_H

#include "mega/runtime/megalith.h"

#include <optional>
#include <string>
#include <utility>

namespace megalith {

/// Success, or a code and a message (lower case, no final period).
class [[nodiscard]] Status {
public:
  /// Success.
  Status() = default;

  /// A failure; `code` is not MEGALITH_OK.
  Status(megalith_status code, std::string message)
      : statusCode(code), text(std::move(message)) {}

  /// Whether the call succeeded.
  bool ok() const { return statusCode == MEGALITH_OK; }

  /// MEGALITH_OK on success.
  megalith_status code() const { return statusCode; }

  /// Empty on success.
  const std::string &message() const { return text; }

private:
  megalith_status statusCode = MEGALITH_OK;
  std::string text;
};

/// A `T`, or the failed status that explains why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  /// Success.
  Result(T value) : value(std::move(value)) {}

  /// Failure; `status` is not ok.
  Result(Status status) : failure(std::move(status)) {}

  /// Whether there is a value.
  explicit operator bool() const { return value.has_value(); }

  /// The value; only if there is one.
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }

  /// Ok if there is a value.
  const Status &status() const { return failure; }

private:
  std::optional<T> value;
  Status failure;
};

} // namespace megalith

#endif
