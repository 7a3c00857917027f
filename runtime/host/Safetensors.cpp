// SPDX-License-Identifier: Apache-2.0

#include "mega/runtime/Safetensors.h"

#include "Error.h"
#include "File.h"
#include "Json.h"

#include <algorithm>

using namespace megalith;
using nlohmann::json;

namespace {

constexpr uint64_t maxHeaderBytes = 100000000;
constexpr const char *metadataKey = "__metadata__";

/// The next bytes of a file as a little-endian number.
uint64_t readLength(const uint8_t *data) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | data[i];
  return length;
}

/// One entry of the header. `buffer` and `size` are the file's byte buffer.
Tensor parseEntry(const JsonField &entry, const uint8_t *buffer,
                  uint64_t size) {
  Tensor tensor;
  JsonField dtype = entry.at("dtype");
  std::optional<DType> parsed = parseSafetensorsDType(dtype.text());
  if (!parsed)
    dtype.failHere(fmt::format("unknown dtype {}", quote(dtype.text())));
  tensor.dtype = *parsed;

  JsonField shape = entry.at("shape");
  for (size_t i = 0, rank = shape.size(); i < rank; ++i)
    tensor.shape.push_back(shape.at(i).integer(0, INT64_MAX));
  std::optional<uint64_t> bytes = tensorBytes(tensor.dtype, tensor.shape);
  if (!bytes)
    shape.failHere(fmt::format("shape {} of {} has no size in whole bytes "
                               "below 2^60",
                               shapeText(tensor.shape), dtype.text()));
  tensor.bytes = *bytes;

  JsonField offsets = entry.at("data_offsets");
  if (offsets.size() != 2)
    offsets.failHere(
        fmt::format("expected 2 offsets, found {}", offsets.size()));
  int64_t begin = offsets.at(size_t(0)).integer(0, int64_t(size));
  int64_t end = offsets.at(1).integer(begin, int64_t(size));
  if (uint64_t(end - begin) != tensor.bytes)
    offsets.failHere(fmt::format("expected {} bytes for {} of shape {}, "
                                 "found {}",
                                 tensor.bytes, dtype.text(),
                                 shapeText(tensor.shape), end - begin));
  tensor.data = buffer + begin;
  return tensor;
}

/// Throws unless the tensors tile [0, size) of `buffer`.
void checkTiling(const TensorMap &map, const std::string &label,
                 const uint8_t *buffer, uint64_t size) {
  std::vector<std::pair<const std::string *, const Tensor *>> order;
  for (const auto &[name, tensor] : map.tensors)
    order.emplace_back(&name, &tensor);
  std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
    return std::make_pair(a.second->data, a.second->bytes) <
           std::make_pair(b.second->data, b.second->bytes);
  });
  uint64_t end = 0;
  for (const auto &[name, tensor] : order) {
    uint64_t begin = uint64_t(tensor->data - buffer);
    if (begin != end)
      fail(MEGALITH_BAD_FORMAT,
           "{}: tensor {} starts at {}, which {} the tensor before, ending "
           "at {}",
           label, quote(*name), begin,
           begin < end ? "overlaps" : "leaves a gap after", end);
    end = begin + tensor->bytes;
  }
  if (end != size)
    fail(MEGALITH_BAD_FORMAT, "{}: tensors end at {}, the buffer at {}", label,
         end, size);
}

/// JSON text of a string or string map; INVALID_ARGUMENT unless it is UTF-8.
std::string jsonText(const json &value) {
  try {
    return value.dump();
  } catch (const json::exception &) {
    fail(MEGALITH_INVALID_ARGUMENT, "names and metadata must be utf-8");
  }
}

TensorMap parse(const std::string &label, std::shared_ptr<const void> owner,
                const uint8_t *data, uint64_t size) {
  if (size < 8)
    fail(MEGALITH_BAD_FORMAT,
         "{}: file has {} bytes, the header length alone takes 8", label, size);
  uint64_t headerBytes = readLength(data);
  if (headerBytes > maxHeaderBytes)
    fail(MEGALITH_BAD_FORMAT, "{}: header has {} bytes, at most {} are allowed",
         label, headerBytes, maxHeaderBytes);
  if (headerBytes > size - 8)
    fail(MEGALITH_BAD_FORMAT,
         "{}: header has {} bytes, but only {} follow its length", label,
         headerBytes, size - 8);
  std::string_view text(reinterpret_cast<const char *>(data) + 8, headerBytes);
  if (text.empty() || text.front() != '{')
    fail(MEGALITH_BAD_FORMAT, "{}: header does not start with '{{'", label);
  json header = parseJson(text, label);

  const uint8_t *buffer = data + 8 + headerBytes;
  uint64_t bufferBytes = size - 8 - headerBytes;
  TensorMap map;
  for (const auto &[name, value] : header.items()) {
    JsonField entry(value, fmt::format("{}: {}", label, quote(name)));
    if (name == metadataKey) {
      if (!value.is_object())
        entry.failHere(
            fmt::format("expected an object, found {}", value.type_name()));
      for (const auto &[key, item] : value.items())
        map.metadata[key] =
            JsonField(item,
                      fmt::format("{}: {}.{}", label, metadataKey, quote(key)))
                .text();
      continue;
    }
    Tensor tensor = parseEntry(entry, buffer, bufferBytes);
    tensor.owner = owner;
    map.tensors.emplace(name, std::move(tensor));
  }
  checkTiling(map, label, buffer, bufferBytes);
  return map;
}

} // namespace

Result<TensorMap> megalith::parseSafetensors(const std::string &label,
                                             std::shared_ptr<const void> owner,
                                             const uint8_t *data,
                                             uint64_t size) {
  return guardResult<TensorMap>(
      [&] { return parse(label, std::move(owner), data, size); });
}

Result<TensorMap> megalith::readSafetensors(const std::string &path) {
  return guardResult<TensorMap>([&] {
    auto file = std::make_shared<const MappedFile>(path);
    return parse(path, file, file->data(), file->size());
  });
}

Status megalith::writeSafetensors(const std::string &path,
                                  const TensorMap &map) {
  return guard([&] {
    std::vector<std::pair<const std::string *, const Tensor *>> order;
    for (const auto &[name, tensor] : map.tensors) {
      if (name == metadataKey)
        fail(MEGALITH_INVALID_ARGUMENT, "no tensor can be named {}",
             quote(name));
      if (tensorBytes(tensor.dtype, tensor.shape) != tensor.bytes)
        fail(MEGALITH_INVALID_ARGUMENT,
             "tensor {} has {} bytes, which do not fit {} of shape {}",
             quote(name), tensor.bytes, dtypeName(tensor.dtype),
             shapeText(tensor.shape));
      order.emplace_back(&name, &tensor);
    }
    std::stable_sort(
        order.begin(), order.end(), [](const auto &a, const auto &b) {
          return dtypeBits(a.second->dtype) > dtypeBits(b.second->dtype);
        });

    std::string text = "{";
    if (!map.metadata.empty())
      text += fmt::format("\"{}\":{}", metadataKey, jsonText(map.metadata));
    uint64_t end = 0;
    for (const auto &[name, tensor] : order) {
      uint64_t begin = end;
      end += tensor->bytes;
      text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],"
                          "\"data_offsets\":[{},{}]}}",
                          text.size() > 1 ? "," : "", jsonText(*name),
                          dtypeName(tensor->dtype),
                          fmt::join(tensor->shape, ","), begin, end);
    }
    text += "}";
    text.resize((text.size() + 7) / 8 * 8, ' ');
    if (text.size() > maxHeaderBytes)
      fail(MEGALITH_INVALID_ARGUMENT,
           "header would have {} bytes, at most {} are allowed", text.size(),
           maxHeaderBytes);

    FileWriter file(path, Links::Follow);
    uint8_t length[8];
    for (int i = 0; i < 8; ++i)
      length[i] = uint8_t(uint64_t(text.size()) >> 8 * i);
    file.write(length, sizeof(length));
    file.write(text.data(), text.size());
    for (const auto &[name, tensor] : order)
      file.write(tensor->data, tensor->bytes);
    file.commit();
  });
}
