// SPDX-License-Identifier: Apache-2.0

#include "Json.h"

#include "Error.h"

#include <set>
#include <vector>

using namespace megalith;
using nlohmann::json;

json megalith::parseJson(std::string_view text, const std::string &label) {
  // The parser keeps the last of two equal keys, and frees deep documents
  // recursively; both are refused here, while they are being read.
  constexpr int maxDepth = 32;
  std::vector<std::set<std::string>> keys;
  auto inspect = [&](int depth, json::parse_event_t event, json &parsed) {
    if (depth > maxDepth)
      fail(MEGALITH_BAD_FORMAT, "{}: nested deeper than {}", label, maxDepth);
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const std::string &key = parsed.get_ref<const std::string &>();
      if (!keys.back().insert(key).second)
        fail(MEGALITH_BAD_FORMAT, "{}: key {} appears twice", label,
             quote(key));
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), inspect);
  } catch (const json::exception &error) {
    fail(MEGALITH_BAD_FORMAT, "{}: not valid json: {}", label, error.what());
  }
}

JsonField JsonField::at(const char *key) const {
  std::optional<JsonField> member = find(key);
  if (!member)
    failHere(fmt::format("key '{}' is missing", key));
  return *member;
}

std::optional<JsonField> JsonField::find(const char *key) const {
  if (!value.is_object())
    failHere(fmt::format("expected an object, found {}", value.type_name()));
  auto it = value.find(key);
  if (it == value.end())
    return std::nullopt;
  return JsonField(*it, path.back() == ' ' ? path + key : path + "." + key);
}

std::vector<std::string> JsonField::keys() const {
  if (!value.is_object())
    failHere(fmt::format("expected an object, found {}", value.type_name()));
  std::vector<std::string> names;
  for (const auto &item : value.items())
    names.push_back(item.key());
  return names;
}

size_t JsonField::size() const {
  if (!value.is_array())
    failHere(fmt::format("expected an array, found {}", value.type_name()));
  return value.size();
}

JsonField JsonField::at(size_t index) const {
  size();
  return JsonField(value[index], fmt::format("{}[{}]", path, index));
}

const std::string &JsonField::text() const {
  if (!value.is_string())
    failHere(fmt::format("expected a string, found {}", value.type_name()));
  const std::string &string = value.get_ref<const std::string &>();
  if (string.find('\0') != std::string::npos)
    failHere("expected a string without nul characters");
  return string;
}

const std::string &JsonField::name() const {
  const std::string &string = text();
  if (string.empty())
    failHere("expected a name, found an empty string");
  return string;
}

bool JsonField::boolean() const {
  if (!value.is_boolean())
    failHere(
        fmt::format("expected true or false, found {}", value.type_name()));
  return value.get<bool>();
}

int64_t JsonField::integer(int64_t low, int64_t high) const {
  if (!value.is_number_integer())
    failHere(fmt::format("expected an integer, found {}",
                         value.is_number() ? "a fraction" : value.type_name()));
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX)
    failHere(fmt::format("expected an integer in {}..{}, found {}", low, high,
                         value.get<uint64_t>()));
  int64_t number = value.get<int64_t>();
  if (number < low || number > high)
    failHere(fmt::format("expected an integer in {}..{}, found {}", low, high,
                         number));
  return number;
}

void JsonField::failHere(const std::string &message) const {
  // A top-level path ends in ": "; nested ones need the separator.
  fail(MEGALITH_BAD_FORMAT, "{}{}{}", path, path.back() == ' ' ? "" : ": ",
       message);
}
