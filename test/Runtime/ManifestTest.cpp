// SPDX-License-Identifier: Apache-2.0

#include "Support.h"

#include <random>

using namespace megalith;

namespace {

/// Expects that the sample with one replacement is refused.
void expectRefused(const std::string &from, const std::string &to,
                   std::initializer_list<const char *> parts,
                   megalith_status code = MEGALITH_BAD_FORMAT) {
  std::string text = replaced(sampleManifest(), from, to);
  expectFailure(parseManifest(text, "m.json").status(), code, parts);
}

} // namespace

TEST(Manifest, Sample) {
  Manifest manifest = parsedSample();
  EXPECT_EQ(manifest.block, "sample");
  EXPECT_EQ(manifest.input.bytes, 32u);
  ASSERT_EQ(manifest.weights.size(), 2u);
  EXPECT_EQ(manifest.weights[1].kind, WeightDesc::Kind::Quant);
  EXPECT_EQ(manifest.weights[1].inputs(), 160);
  EXPECT_EQ(manifest.packed[1].sources, std::vector<size_t>{1});
  EXPECT_FALSE(manifest.states[0].isCache());
  EXPECT_EQ(manifest.states[0].unitBytes, 24u);
  EXPECT_TRUE(manifest.states[1].isCache());
  EXPECT_EQ(manifest.states[1].unitBytes, 16u);
  EXPECT_EQ(manifest.targets[1].capability, 90);
  EXPECT_TRUE(manifest.targets[1].exact);
}

TEST(Manifest, LoadNamesTheFile) {
  TemporaryFolder folder;
  expectFailure(loadBundle(folder.path).status(), MEGALITH_IO_ERROR,
                {"manifest.json", "cannot open"});
  writeText(folder / "manifest.json", "{");
  expectFailure(loadBundle(folder.path).status(), MEGALITH_BAD_FORMAT,
                {"manifest.json", "not valid json"});
  writeText(folder / "manifest.json", sampleManifest());
  EXPECT_OK(loadBundle(folder.path).status());
}

TEST(Manifest, FormatAndVersion) {
  expectRefused("megalith-bundle", "other",
                {"m.json: format", "expected 'megalith-bundle'", "'other'"});
  expectRefused("\"version\": 1", "\"version\": 2",
                {"format version 2", "reads up to 1"},
                MEGALITH_UNSUPPORTED_VERSION);
  expectRefused("\"version\": 1", "\"version\": 0", {"found 0"});
  expectRefused("\"version\": 1", "\"version\": \"1\"",
                {"version: expected an integer, found string"});
  expectRefused("\"block\": \"sample\",", "", {"key 'block' is missing"});
  expectRefused("\"block\": \"sample\",", "\"block\": \"a\", \"block\": \"b\",",
                {"'block' appears twice"});
}

TEST(Manifest, Weights) {
  expectRefused("\"group\": 32", "\"group\": 48", {"weights[1].group", "48"});
  expectRefused("\"group\": 32", "\"group\": 128",
                {"160 inputs are not a multiple of group 128"});
  expectRefused("[80, 24]", "[160, 24]",
                {"weights[1].tensors[0]", "expected U8 of shape 80x24",
                 "found U8 of shape 160x24"});
  expectRefused("\"kind\": \"dense\"", "\"kind\": \"sparse\"",
                {"expected quant or dense, found 'sparse'"});
  expectRefused("w.scales", "w.w_q", {"name 'w.w_q' appears twice"});
  expectRefused("{\"name\": \"w\",", "{\"name\": \"norm\",",
                {"name 'norm' appears twice"});
  expectRefused("[160, 24]", "[160]", {"rank 2 or 3", "found 1"});
  expectRefused("\"kind\": \"dense\", \"shape\": [16]",
                "\"kind\": \"dense\", \"shape\": [17]",
                {"expected BF16 of shape 17"});
  expectRefused("[160, 24]", "[1,1,1,1,1,1,1,1,1]", {"rank 9 is above 8"});
}

TEST(Manifest, Packed) {
  expectRefused("\"offset\": 32", "\"offset\": 24", {"multiple of 16"});
  expectRefused("\"offset\": 32", "\"offset\": 16", {"overlap"});
  expectRefused("\"offset\": 32", "\"offset\": 48",
                {"bytes 48..5168 are not inside the 5152 allocated"});
  expectRefused("\"bytes\": 5120", "\"bytes\": 4096",
                {"packed[1].bytes: expected 5120, found 4096"});
  expectRefused("\"offset\": 32", "\"offset\": -32", {"found -32"});
  expectRefused("\"offset\": 32", "\"offset\": 9223372036854775807",
                {"packed[1].offset"});
  expectRefused("\"layout\": \"raw\"", "\"layout\": \"row\"", {"'row'"});
  expectRefused("\"sources\": [\"w\"]", "\"sources\": [\"v\"]",
                {"no weight is named 'v'"});
  expectRefused("\"sources\": [\"w\"]", "\"sources\": []",
                {"expected 1 or 2 sources, found 0"});
  expectRefused("\"sources\": [\"w\"]", "\"sources\": [\"norm\"]",
                {"'norm' is not a quant weight"});
  expectRefused("mma_m16k128\"", "mma_m16k128_pair\"",
                {"expected 2 or 4 sources, found 1"});
  expectRefused(",\n    {\"layout\": \"mma_m16k128\", \"offset\": 32, "
                "\"bytes\": 5120, \"sources\": [\"w\"]}",
                "", {"no region holds weight 'w'"});
}

TEST(Manifest, StatesAndProbes) {
  expectRefused("[-1, 8]", "[8, -1]", {"states[1].shape[1]", "found -1"});
  expectRefused("[-1, 8]", "[0, 8]", {"dimension 0 is 0"});
  expectRefused("\"name\": \"kv\"", "\"name\": \"S\"", {"appears twice"});
  expectRefused("\"name\": \"kv\"", "\"name\": \"k\\u0000v\"", {"nul"});
  expectRefused("\"f32\"", "\"f64\"", {"found 'f64'"});
  expectRefused("[2, 3]", "[281474976710656, 281474976710656]", {"too large"});
  expectRefused("\"offset\": 64", "\"offset\": 244",
                {"probes[0]", "not inside the 256"});
  expectRefused("\"offset\": 64", "\"offset\": 65", {"multiple of 4"});
}

TEST(Manifest, LaunchAndTargets) {
  expectRefused("\"threads\": 512", "\"threads\": 500", {"whole warps"});
  expectRefused("\"threads\": 512", "\"threads\": 2048", {"32..1024"});
  expectRefused("\"max_ctas\": 100", "\"max_ctas\": 0", {"found 0"});
  for (const char *arch : {"sm_", "sm_9", "sm_90b", "90", "sm_90aa", "", "a"})
    expectRefused("sm_90a\"", std::string(arch) + "\"",
                  {"targets[1].arch", "expected sm_NN"});
  for (const char *file : {"../x", "/etc/x", "a\\\\b", ".", "..", "a/b"})
    expectRefused("kernel.sm_80.cubin", file,
                  {"targets[0].file", "without a folder"});
  expectRefused("kernel.sm_80.cubin", "", {"empty string"});
}

TEST(Manifest, DamagedTextNeverCrashes) {
  std::string good = sampleManifest();
  std::mt19937 random(2);
  const std::string fragments[] = {
      "null", "-1", "1e99", "{}", "[]", "9223372036854775807", "\"\"", "true"};
  for (int i = 0; i < 5000; ++i) {
    std::string bad = good;
    if (i % 2 == 0) {
      bad[random() % bad.size()] = char(random());
    } else {
      // Put another value where one begins.
      size_t at = bad.find(": ", random() % bad.size());
      if (at == std::string::npos)
        continue;
      size_t end = bad.find_first_of(",}]\n", at + 2);
      bad.replace(at + 2, end - at - 2, fragments[random() % 8]);
    }
    Result<Manifest> manifest = parseManifest(bad, "m");
    EXPECT_TRUE(manifest || !manifest.status().message().empty());
  }
}

TEST(Manifest, OptionalParts) {
  EXPECT_FALSE(parsedSample().persistent);
  EXPECT_FALSE(parsedSample().traffic);
  std::string digest(64, 'a');
  std::string text = replaced(
      replaced(
          sampleManifest(), "{\"bytes\": 256}",
          "{\"bytes\": 256, \"persistent\": [{\"offset\": 0, \"bytes\": 16, "
          "\"kind\": \"grid_barrier\"}]}"),
      "\"schedule\": {}",
      "\"schedule\": {\"phase_list\": [{\"stages\": [\"a\", \"b\"]}],"
      "\"bytes_per_step\": {\"weights\": 1, \"state\": 2, "
      "\"cache_per_token\": 3}}, \"ptx\": [{\"arch\": \"compute_90a\", "
      "\"file\": \"k.ptx\"}], \"files\": {\"k.ptx\": \"" +
          digest + "\"}");
  Result<Manifest> manifest = parseManifest(text, "m.json");
  ASSERT_TRUE(manifest) << manifest.status().message();
  ASSERT_TRUE(manifest->persistent);
  EXPECT_EQ((*manifest->persistent)[0].bytes, 16u);
  EXPECT_EQ((*manifest->persistent)[0].kind, "grid_barrier");
  EXPECT_EQ(manifest->phases[0].stages, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(manifest->traffic->cachePerToken, 3u);
  EXPECT_EQ(manifest->ptx[0].capability, 90);
  EXPECT_TRUE(manifest->ptx[0].exact);
  EXPECT_EQ(manifest->digests.at("k.ptx"), digest);

  auto refused = [&](const std::string &from, const std::string &to,
                     std::initializer_list<const char *> parts) {
    expectFailure(parseManifest(replaced(text, from, to), "m.json").status(),
                  MEGALITH_BAD_FORMAT, parts);
  };
  refused("\"bytes\": 16", "\"bytes\": 257",
          {"persistent[0]", "not inside the 256"});
  refused("\"bytes\": 16", "\"bytes\": 2", {"expected at least 4, found 2"});
  refused("\"grid_barrier\"", "\"counters\"", {"key 'name' is missing"});
  refused("\"grid_barrier\"",
          "\"counters\", \"name\": \"a\", \"count\": 5",
          {"count", "1..4, found 5"});
  refused("\"offset\": 0, \"bytes\": 16", "\"offset\": 2, \"bytes\": 16",
          {"not a multiple of 4"});
  refused("\"stages\": [\"a\"", "\"stages\": [7", {"stages[0]"});
  refused("\"cache_per_token\": 3", "\"cache_per_token\": -3",
          {"bytes_per_step.cache_per_token"});
  refused("compute_90a", "sm_90a",
          {"ptx[0].arch", "expected compute_NN or compute_NNa"});
  refused("\"file\": \"k.ptx\"", "\"file\": \"../k.ptx\"",
          {"ptx[0].file", "without a folder"});
  refused("\"aaaa", "\"AAAA", {"files.k.ptx", "64 lower-case"});
}
