// SPDX-License-Identifier: Apache-2.0

#include "Options.h"

#include "Files.h"
#include "Gpu.h"
#include "Support.h"

#include <filesystem>

using namespace megalith::bench;

namespace {

Options parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "megalith-bench");
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  return parseOptions(int(arguments.size()), argv.data());
}

/// The message of the error that the arguments give.
std::string messageOf(std::vector<std::string> arguments) {
  try {
    parse(std::move(arguments));
  } catch (const BenchError &error) {
    return error.what();
  }
  return "no error";
}

TEST(BenchOptions, BundlesAndContexts) {
  Options options = parse({"--context=1,2048", "a.bundle", "--vs=b", "--vs",
                           "c", "--steps=7", "--json=-"});
  EXPECT_EQ(options.bundles, (std::vector<std::string>{"a.bundle", "b", "c"}));
  EXPECT_EQ(options.contexts, (std::vector<int64_t>{1, 2048}));
  EXPECT_EQ(options.steps, 7);
  EXPECT_EQ(options.json, "-");
  EXPECT_EQ(options.batch, 1);
}

TEST(BenchOptions, Candidates) {
  TemporaryFolder folder;
  writeText(folder / "candidates.json",
            R"({"candidates": [{"bundle": "x"}, {"bundle": "y"}]})");
  EXPECT_EQ(parse({"--candidates=" + folder.path}).bundles,
            (std::vector<std::string>{folder / "x", folder / "y"}));
  writeText(folder / "candidates.json", R"({"candidates": [{"name": "x"}]})");
  EXPECT_NE(messageOf({"--candidates=" + folder.path})
                .find("candidate without the string 'bundle'"),
            std::string::npos);
  writeText(folder / "candidates.json", "[]");
  EXPECT_NE(
      messageOf({"--candidates=" + folder.path}).find("no array 'candidates'"),
      std::string::npos);
  writeText(folder / "candidates.json",
            std::string(200000, '[') + std::string(200000, ']'));
  EXPECT_EQ(messageOf({"--candidates=" + folder.path}),
            "'" + (folder / "candidates.json") +
                "': JSON is nested deeper than 64 levels, expected at most "
                "that");
}

TEST(BenchOptions, Errors) {
  EXPECT_EQ(messageOf({}), "no bundle is given, expected BUNDLE, "
                           "--candidates=DIR, --calibrate or --write-kernels");
  EXPECT_EQ(messageOf({"--vs=b"}),
            "--vs is given without BUNDLE, expected both");
  EXPECT_EQ(messageOf({"a", "b"}), "'b' stands beside 'a', expected one "
                                   "bundle, and others by --vs");
  EXPECT_EQ(messageOf({"a", "--context=1,x"}),
            "--context is 'x', expected 0 to 1073741824");
  EXPECT_EQ(messageOf({"a", "--context="}),
            "--context is '', expected 0 to 1073741824");
  EXPECT_EQ(messageOf({"a", "--batch=9"}), "--batch is '9', expected 1 to 8");
  EXPECT_EQ(messageOf({"a", "--steps=0"}),
            "--steps is '0', expected 1 to 1000000");
  EXPECT_EQ(messageOf({"a", "--nonsense"}),
            "unknown or ambiguous option '--nonsense', see --help");
  EXPECT_EQ(messageOf({"a", "--json"}), "--json has no value, expected one");
  EXPECT_EQ(messageOf({"--calibrate"}),
            "-o is missing, expected the file to write");
  EXPECT_EQ(messageOf({"--calibrate", "-o", "x", "a"}),
            "bundle 'a' is given with --calibrate, expected none");
  EXPECT_EQ(messageOf({"--calibrate", "--write-kernels", "-o", "x"}),
            "--calibrate and --write-kernels are both given, expected one");
  EXPECT_EQ(messageOf({"a", "-o", "x"}), "-o is for --calibrate and "
                                         "--write-kernels, expected "
                                         "--json=FILE");
  EXPECT_EQ(messageOf({"a", "--machine=m"}),
            "--machine is given without --calibrate");
}

TEST(BenchFiles, WritesThroughLinksAndDevices) {
  TemporaryFolder folder;
  writeText(folder / "target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  writeWholeFile(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(readWholeFile(folder / "target"), "new");
  // By way of a link: a failure here must not replace the device.
  std::filesystem::create_symlink("/dev/full", folder / "full");
  EXPECT_THROW(writeWholeFile(folder / "full", "new"), BenchError);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "full"));
  EXPECT_THROW(writeWholeFile(folder.path, "new"), BenchError);
  EXPECT_THROW(writeWholeFile(folder / "no/file", "new"), BenchError);
}

} // namespace
