// SPDX-License-Identifier: Apache-2.0
//
// JSON from untrusted files: parsed without duplicates or deep nesting, and
// read field by field with errors that say where.

#ifndef MEGA_RUNTIME_HOST_JSON_H
#define MEGA_RUNTIME_HOST_JSON_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// Parses one JSON value. BAD_FORMAT, starting with `label`, for a syntax
/// error, an object that repeats a key, or nesting deeper than 32.
nlohmann::json parseJson(std::string_view text, const std::string &label);

/// A value in a JSON document and its path for messages, such as
/// "m.json: packed[2].bytes". Accessors throw BAD_FORMAT naming the path, what
/// was found and what was wanted.
class JsonField {
public:
  /// A path that ends in a space stands for a whole document: "m.json: ".
  JsonField(const nlohmann::json &value, std::string path)
      : value(value), path(std::move(path)) {}

  /// A member that must be there; this must be an object.
  JsonField at(const char *key) const;
  /// A member if it is there; this must be an object.
  std::optional<JsonField> find(const char *key) const;
  /// The names of all members; this must be an object.
  std::vector<std::string> keys() const;
  /// The number of elements; this must be an array.
  size_t size() const;
  /// An element; this must be an array.
  JsonField at(size_t index) const;

  /// A string without NUL.
  const std::string &text() const;
  /// A string that is not empty.
  const std::string &name() const;
  /// True or false.
  bool boolean() const;
  /// An integer in [low, high].
  int64_t integer(int64_t low, int64_t high) const;

  /// Throws BAD_FORMAT with this path before the message.
  [[noreturn]] void failHere(const std::string &message) const;

private:
  const nlohmann::json &value;
  std::string path;
};

} // namespace megalith

#endif
