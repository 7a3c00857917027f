// SPDX-License-Identifier: Apache-2.0

#include "Support.h"

#include "mega/runtime/Safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

using namespace megalith;

namespace {

/// File bytes of a header and a buffer of `bufferBytes` zeros.
std::string fileOf(const std::string &header, size_t bufferBytes) {
  std::string file(8, '\0');
  uint64_t length = header.size();
  std::memcpy(&file[0], &length, 8); // tests run on little-endian hosts
  return file + header + std::string(bufferBytes, '\0');
}

/// Parses bytes in an exact allocation, so that sanitizers see overruns.
Result<TensorMap> parseBytes(const std::string &file) {
  auto bytes = std::make_shared<std::vector<uint8_t>>(file.begin(), file.end());
  return parseSafetensors("f", bytes, bytes->data(), bytes->size());
}

void expectMalformed(const std::string &file,
                     std::initializer_list<const char *> parts) {
  expectFailure(parseBytes(file).status(), MEGALITH_BAD_FORMAT, parts);
}

/// A map with odd sizes, an empty tensor, a scalar and metadata.
TensorMap sampleMap() {
  TensorMap map;
  std::vector<uint8_t> bytes(64);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = uint8_t(i * 7);
  map.tensors["odd"] = Tensor::copyOf(DType::U8, {3}, bytes.data());
  map.tensors["half"] = Tensor::copyOf(DType::BF16, {2, 5}, bytes.data());
  map.tensors["scalar"] = Tensor::copyOf(DType::F32, {}, bytes.data());
  map.tensors["empty"] = Tensor::copyOf(DType::F32, {0, 4}, nullptr);
  map.tensors["quote\"\n\xc3\xa9"] =
      Tensor::copyOf(DType::I64, {1}, bytes.data());
  map.metadata["seed"] = "5";
  return map;
}

std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

TEST(Safetensors, RoundTrip) {
  TemporaryFolder folder;
  TensorMap map = sampleMap();
  EXPECT_OK(writeSafetensors(folder / "a", map));
  Result<TensorMap> read = readSafetensors(folder / "a");
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->metadata, map.metadata);
  ASSERT_EQ(read->tensors.size(), map.tensors.size());
  for (const auto &[name, tensor] : map.tensors) {
    const Tensor *other = read->find(name);
    ASSERT_TRUE(other) << name;
    EXPECT_EQ(other->dtype, tensor.dtype);
    EXPECT_EQ(other->shape, tensor.shape);
    ASSERT_EQ(other->bytes, tensor.bytes);
    if (tensor.bytes != 0) {
      EXPECT_EQ(std::memcmp(other->data, tensor.data, tensor.bytes), 0);
    }
  }
}

TEST(Safetensors, TensorsOutliveTheMap) {
  TemporaryFolder folder;
  EXPECT_OK(writeSafetensors(folder / "a", sampleMap()));
  Tensor kept = readSafetensors(folder / "a")->tensors.at("odd");
  EXPECT_EQ(kept.data[2], 14);
}

TEST(Safetensors, WritesTheSameBytesEachTime) {
  TemporaryFolder folder;
  EXPECT_OK(writeSafetensors(folder / "a", sampleMap()));
  EXPECT_OK(writeSafetensors(folder / "b", sampleMap()));
  EXPECT_EQ(readAll(folder / "a"), readAll(folder / "b"));
}

TEST(Safetensors, WriteErrorsLeaveNoFile) {
  TemporaryFolder folder;
  TensorMap map = sampleMap();
  map.tensors["odd"].bytes = 2;
  expectFailure(writeSafetensors(folder / "a", map), MEGALITH_INVALID_ARGUMENT,
                {"'odd'", "2 bytes", "U8", "shape 3"});
  map = sampleMap();
  map.tensors["\xff"] = map.tensors["odd"];
  expectFailure(writeSafetensors(folder / "a", map), MEGALITH_INVALID_ARGUMENT,
                {"utf-8"});
  expectFailure(readSafetensors(folder / "a").status(), MEGALITH_IO_ERROR,
                {"cannot open"});
  expectFailure(writeSafetensors(folder / "no/a", sampleMap()),
                MEGALITH_IO_ERROR, {"cannot create"});
}

TEST(Safetensors, WritesThroughLinksAndDevices) {
  TemporaryFolder folder;
  // What a link names is replaced, not the link.
  EXPECT_OK(writeSafetensors(folder / "plain", sampleMap()));
  writeText(folder / "target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  EXPECT_OK(writeSafetensors(folder / "link", sampleMap()));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(readAll(folder / "target"), readAll(folder / "plain"));
  std::filesystem::create_symlink("made", folder / "dangling");
  EXPECT_OK(writeSafetensors(folder / "dangling", sampleMap()));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "dangling"));
  EXPECT_EQ(readAll(folder / "made"), readAll(folder / "plain"));
  // Devices, by way of links: a failure here must not replace the device.
  std::filesystem::create_symlink("/dev/null", folder / "null");
  EXPECT_OK(writeSafetensors(folder / "null", sampleMap()));
  EXPECT_TRUE(std::filesystem::is_character_file(folder / "null"));
  std::filesystem::create_symlink("/dev/full", folder / "full");
  expectFailure(writeSafetensors(folder / "full", sampleMap()),
                MEGALITH_IO_ERROR, {"/full", "No space left on device"});
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "full"));
  expectFailure(writeSafetensors(folder.path, sampleMap()), MEGALITH_IO_ERROR,
                {"Is a directory"});
}

TEST(Safetensors, ReadErrorsNameTheFile) {
  TemporaryFolder folder;
  expectFailure(readSafetensors(folder.path).status(), MEGALITH_IO_ERROR,
                {"not a regular file"});
  writeText(folder / "empty", "");
  expectFailure(readSafetensors(folder / "empty").status(), MEGALITH_BAD_FORMAT,
                {"empty", "0 bytes"});
}

TEST(Safetensors, MalformedHeaders) {
  expectMalformed("1234567", {"7 bytes", "takes 8"});
  expectMalformed(std::string(8, '\xff'), {"at most 100000000"});
  expectMalformed(fileOf("{}", 0).substr(0, 9), {"2 bytes", "only 1"});
  expectMalformed(fileOf("", 0), {"does not start with '{'"});
  expectMalformed(fileOf(" {}", 0), {"does not start with '{'"});
  expectMalformed(fileOf("[]", 0), {"does not start with '{'"});
  expectMalformed(fileOf("{", 0), {"not valid json"});
  expectMalformed(fileOf("{}x", 0), {"not valid json"});
  expectMalformed(fileOf("{\"\xff\":1}", 0), {"not valid json"});
  expectMalformed(fileOf("{\"a\":" + std::string(100000, '['), 0),
                  {"nested deeper"});
  expectMalformed(fileOf("{\"a\":1}", 0), {"'a'", "expected an object"});
  expectMalformed(fileOf("{\"__metadata__\":{\"k\":1}}", 0),
                  {"__metadata__.'k'", "expected a string"});
  expectMalformed(fileOf("{\"__metadata__\":[]}", 0), {"expected an object"});
  EXPECT_OK(parseBytes(fileOf("{}   ", 0)).status());
}

TEST(Safetensors, MalformedEntries) {
  auto entry = [](const std::string &dtype, const std::string &shape,
                  const std::string &offsets) {
    return "{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}}";
  };
  EXPECT_OK(parseBytes(fileOf(entry("\"U8\"", "[4]", "[0,4]"), 4)).status());
  expectMalformed(fileOf(entry("\"U9\"", "[4]", "[0,4]"), 4),
                  {"'a'.dtype", "unknown dtype 'U9'"});
  expectMalformed(fileOf(entry("8", "[4]", "[0,4]"), 4),
                  {"dtype", "expected a string, found number"});
  expectMalformed(fileOf(entry("\"U8\"", "4", "[0,4]"), 4),
                  {"shape", "expected an array"});
  expectMalformed(fileOf(entry("\"U8\"", "[-4]", "[0,4]"), 4), {"found -4"});
  expectMalformed(fileOf(entry("\"U8\"", "[4.0]", "[0,4]"), 4),
                  {"shape[0]", "found a fraction"});
  expectMalformed(fileOf(entry("\"U8\"", "[18446744073709551615]", "[0,4]"), 4),
                  {"found 18446744073709551615"});
  expectMalformed(
      fileOf(entry("\"U8\"", "[4294967296,4294967296,16]", "[0,4]"), 4),
      {"4294967296x4294967296x16", "no size"});
  expectMalformed(fileOf(entry("\"F4\"", "[3]", "[0,2]"), 2), {"no size"});
  expectMalformed(fileOf(entry("\"U8\"", "[4]", "[0]"), 4),
                  {"expected 2 offsets, found 1"});
  expectMalformed(fileOf(entry("\"U8\"", "[4]", "[4,0]"), 4), {"data_offsets"});
  expectMalformed(fileOf(entry("\"U8\"", "[4]", "[0,5]"), 4),
                  {"data_offsets[1]", "0..4, found 5"});
  expectMalformed(fileOf(entry("\"BF16\"", "[4]", "[0,4]"), 4),
                  {"expected 8 bytes for BF16 of shape 4, found 4"});
  expectMalformed(fileOf(entry("\"U8\"", "[4]", "[0,4]"), 5),
                  {"tensors end at 4, the buffer at 5"});
  expectMalformed(fileOf(entry("\"U8\"", "[4]", "[1,5]"), 5), {"gap"});
  expectMalformed(fileOf("{\"a\":{\"shape\":[],\"data_offsets\":[0,1]}}", 1),
                  {"key 'dtype' is missing"});
}

TEST(Safetensors, OverlapsAndDuplicates) {
  const std::string a =
      "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}";
  const std::string b =
      "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}";
  expectMalformed(fileOf("{" + a + "," + b + "}", 6), {"'b'", "overlaps"});
  expectMalformed(fileOf("{" + a + "," + a + "}", 4),
                  {"key 'a' appears twice"});
  expectMalformed(
      fileOf("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4],"
             "\"data_offsets\":[0,4]}}",
             4),
      {"key 'dtype' appears twice"});
}

TEST(Safetensors, DamagedBytesNeverCrash) {
  TemporaryFolder folder;
  EXPECT_OK(writeSafetensors(folder / "a", sampleMap()));
  std::string good = readAll(folder / "a");
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (unsigned n = random() % 4 + 1; n > 0; --n)
      bad[random() % bad.size()] = char(random());
    if (random() % 4 == 0)
      bad.resize(random() % bad.size());
    Result<TensorMap> map = parseBytes(bad);
    unsigned sum = 0;
    if (map)
      for (const auto &named : map->tensors)
        for (uint64_t j = 0; j < named.second.bytes; ++j)
          sum += named.second.data[j];
    EXPECT_TRUE(map || !map.status().message().empty()) << sum;
  }
}

TEST(Safetensors, FilesOfAnotherWriter) {
  // The golden files come from Python.
  std::string path = MEGALITH_GOLDEN_DIR "/motif_small.safetensors";
  if (!std::ifstream(path))
    GTEST_SKIP() << "no " << path;
  Result<TensorMap> map = readSafetensors(path);
  ASSERT_TRUE(map) << map.status().message();
  EXPECT_EQ(map->metadata.at("hidden"), "256");
  const Tensor *codes = map->find("weights/blocks.0.attn.q_proj.w_q");
  ASSERT_TRUE(codes);
  EXPECT_EQ(codes->shape, (std::vector<int64_t>{128, 256}));
}
