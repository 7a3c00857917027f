// SPDX-License-Identifier: Apache-2.0
//
// Which image an instance runs, and the cache of those compiled here.

#include "Cubin.h"
#include "Error.h"
#include "FakeDriver.h"
#include "ImageCache.h"
#include "KernelImage.h"
#include "Sha256.h"
#include "Support.h"

#include "mega/runtime/Instance.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace megalith;

namespace {

std::string readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Status statusOf(const std::string &bytes) {
  return guard([&] { checkCubin(bytes, "image"); });
}

/// A variable set while this lives.
class Setting {
public:
  Setting(const char *name, const std::string &value) : name(name) {
    if (const char *before = std::getenv(name))
      old = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (old)
      ::setenv(name, old->c_str(), 1);
    else
      ::unsetenv(name);
  }

private:
  const char *name;
  std::optional<std::string> old;
};

/// A bundle with cubins for sm_80 and sm_90a and a kernel.cu, on a device of
/// capability 12.0, with a fake NVRTC and an empty cache.
class FallbackTest : public ::testing::Test {
protected:
  void SetUp() override {
    driver.device.major = 12;
    driver.device.minor = 0;
    write(sampleManifest());
    writeText(folder / "kernel.cu", "// the text");
    writeText(folder / "image", sampleCubin("compiled"));
  }
  void write(const std::string &manifest) {
    writeText(folder / "manifest.json", manifest);
  }
  void writePtx() {
    write(
        replaced(sampleManifest(), "\"schedule\": {}",
                 "\"ptx\": [{\"arch\": \"compute_80\", \"file\": \"k.ptx\"}]"));
    writeText(folder / "k.ptx", ".version 8.0 // ptx");
  }
  Result<std::unique_ptr<Instance>> create() {
    Result<std::shared_ptr<const Bundle>> bundle = loadBundle(folder.path);
    EXPECT_OK(bundle.status());
    return Instance::create(*bundle, 0, 4);
  }
  std::string compilations() { return readText(folder / "log"); }
  std::string entry() {
    for (const auto &item :
         std::filesystem::directory_iterator(folder / "cache"))
      return item.path().string();
    return "";
  }

  TemporaryFolder folder;
  FakeDriverScope driver;
  Setting nvrtc{"MEGALITH_NVRTC", MEGALITH_FAKE_NVRTC};
  Setting image{"FAKE_NVRTC_IMAGE", folder / "image"};
  Setting log{"FAKE_NVRTC_LOG", folder / "log"};
  Setting cache{"MEGALITH_CACHE", folder / "cache"};
};

} // namespace

TEST(Sha256, KnownAnswers) {
  // FIPS 180-4's examples, and lengths around the padding's edges.
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb924"
                        "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223"
                           "b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(55, 'a')),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(sha256(std::string(64, 'a')),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Cubin, TakesOnlyWhatLiesInside) {
  std::string good = sampleCubin("names");
  EXPECT_OK(statusOf(good));
  expectFailure(statusOf("cubin"), MEGALITH_BAD_FORMAT,
                {"image: not a cubin: 5 bytes"});
  // Every truncation loses something that a header names.
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_EQ(statusOf(good.substr(0, bytes)).code(), MEGALITH_BAD_FORMAT)
        << bytes;
  auto changed = [&](auto change) {
    std::string bytes = good;
    auto *header = reinterpret_cast<Elf64_Ehdr *>(bytes.data());
    Elf64_Shdr section;
    char *at = bytes.data() + header->e_shoff + sizeof section;
    std::memcpy(&section, at, sizeof section);
    change(*header, section);
    std::memcpy(at, &section, sizeof section);
    return statusOf(bytes);
  };
  using H = Elf64_Ehdr;
  using S = Elf64_Shdr;
  expectFailure(changed([](H &h, S &) { h.e_machine = EM_X86_64; }),
                MEGALITH_BAD_FORMAT, {"machine 62, expected 2, 1, 190"});
  expectFailure(changed([](H &h, S &) { h.e_shnum = 3; }), MEGALITH_BAD_FORMAT,
                {"section header 2"});
  expectFailure(changed([](H &h, S &) { h.e_shoff = ~0ull; }),
                MEGALITH_BAD_FORMAT, {"beyond the file's"});
  expectFailure(changed([](H &h, S &) { h.e_phnum = 1; }), MEGALITH_BAD_FORMAT,
                {"program headers have 0 bytes, expected 56"});
  expectFailure(changed([](H &h, S &) {
                  h.e_phnum = 9;
                  h.e_phentsize = 56;
                }),
                MEGALITH_BAD_FORMAT, {"beyond"});
  expectFailure(changed([](H &h, S &) { h.e_shstrndx = 2; }),
                MEGALITH_BAD_FORMAT, {"names in section 2"});
  expectFailure(changed([](H &, S &s) { s.sh_offset = ~0ull; }),
                MEGALITH_BAD_FORMAT, {"section 1 has"});
  expectFailure(changed([](H &, S &s) { s.sh_size = ~0ull - 63; }),
                MEGALITH_BAD_FORMAT, {"section 1 has"});
  expectFailure(changed([](H &, S &s) { --s.sh_size; }), MEGALITH_BAD_FORMAT,
                {"string table 1 does not end"});
  EXPECT_OK(changed([](H &, S &s) { s.sh_type = SHT_NOBITS; }));
}

TEST(Ptx, IsText) {
  EXPECT_OK(guard([] { checkPtx("//\n.version 8.0\n", "p"); }));
  expectFailure(guard([] { checkPtx("abc", "p"); }), MEGALITH_BAD_FORMAT,
                {"no .version"});
  expectFailure(
      guard([] { checkPtx(std::string_view(".version\0x", 10), "p"); }),
      MEGALITH_BAD_FORMAT, {"byte 8 is a nul"});
}

TEST(ImageCache, KeepsWhatIsWhole) {
  TemporaryFolder folder;
  ImageCache cache(folder / "a");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  EXPECT_TRUE(cache.store("key", "image"));
  EXPECT_EQ(cache.find("key"), "image");
  EXPECT_EQ(cache.find("other"), std::nullopt);
  std::string whole = readText(cache.pathOf("key"));
  // Torn, damaged, extended, or another's: not there.
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    writeText(cache.pathOf("key"), whole.substr(0, bytes));
    EXPECT_EQ(cache.find("key"), std::nullopt) << bytes;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 4;
    writeText(cache.pathOf("key"), damaged);
    EXPECT_EQ(cache.find("key"), std::nullopt) << at;
  }
  writeText(cache.pathOf("key"), whole + "x");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  writeText(cache.pathOf("other"), whole);
  EXPECT_EQ(cache.find("other"), std::nullopt);
  // And written again.
  EXPECT_TRUE(cache.store("key", "image"));
  EXPECT_EQ(cache.find("key"), "image");
}

TEST(ImageCache, TrustsOnlyAFolderOfOnesOwn) {
  TemporaryFolder folder;
  ImageCache cache(folder / "a");
  EXPECT_TRUE(cache.store("key", "image"));
  struct stat info;
  ASSERT_EQ(::stat((folder / "a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(::chmod((folder / "a").c_str(), 0770), 0);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  EXPECT_FALSE(cache.store("key", "image"));
  ASSERT_EQ(::chmod((folder / "a").c_str(), 0700), 0);
  // No link leads out of it.
  std::filesystem::rename(cache.pathOf("key"), folder / "moved");
  std::filesystem::create_symlink(folder / "moved", cache.pathOf("key"));
  EXPECT_EQ(cache.find("key"), std::nullopt);
  // What cannot be made is no error.
  writeText(folder / "file", "");
  EXPECT_FALSE(ImageCache(folder / "file/a").store("key", "image"));
  EXPECT_FALSE(ImageCache("").store("key", "image"));
  EXPECT_EQ(ImageCache("").find("key"), std::nullopt);
}

TEST(ImageCache, IsWhereTheUserSays) {
  Setting own("MEGALITH_CACHE", "/own");
  EXPECT_EQ(ImageCache::ofUser().pathOf("k").find("/own/"), 0u);
  ::setenv("MEGALITH_CACHE", "", 1);
  EXPECT_FALSE(ImageCache::ofUser().store("k", "i"));
  ::unsetenv("MEGALITH_CACHE");
  Setting base("XDG_CACHE_HOME", "/base");
  Setting home("HOME", "/home/me");
  EXPECT_EQ(ImageCache::ofUser().pathOf("k").find("/base/megalith/"), 0u);
  // The XDG specification: relative paths are invalid and to be ignored.
  ::setenv("XDG_CACHE_HOME", "base", 1);
  EXPECT_EQ(ImageCache::ofUser().pathOf("k").find("/home/me/.cache/megalith/"),
            0u);
}

TEST(ImageCache, ManyWritersAndReaders) {
  TemporaryFolder folder;
  std::string image(1 << 16, 'x');
  std::atomic<int> found{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      ImageCache cache(folder / "a");
      for (int i = 0; i < 20; ++i) {
        if (t % 2 == 0) {
          EXPECT_TRUE(cache.store("key", image));
        } else if (auto got = cache.find("key")) {
          EXPECT_EQ(*got, image);
          ++found;
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(ImageCache(folder / "a").find("key"), image);
  // Nothing is left beside the entry.
  int files = 0;
  for ([[maybe_unused]] const auto &item :
       std::filesystem::directory_iterator(folder / "a"))
    ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(FallbackTest, CompilesOnceAndKeepsIt) {
  auto first = create();
  ASSERT_TRUE(first) << first.status().message();
  EXPECT_EQ((*first)->origin(), ImageOrigin::Compiled);
  EXPECT_EQ((*first)->arch(), "sm_120a");
  EXPECT_EQ(driver.device.image, "compiled");
  EXPECT_EQ(compilations(), "sm_120a\n");
  auto second = create();
  ASSERT_TRUE(second) << second.status().message();
  EXPECT_EQ((*second)->origin(), ImageOrigin::Cached);
  EXPECT_EQ(driver.device.image, "compiled");
  EXPECT_EQ(compilations(), "sm_120a\n");
  // Another text and another device are other entries.
  writeText(folder / "kernel.cu", "// another text");
  EXPECT_EQ((*create())->origin(), ImageOrigin::Compiled);
  driver.device.major = 7;
  driver.device.minor = 5;
  EXPECT_EQ((*create())->arch(), "sm_75");
  EXPECT_EQ(compilations(), "sm_120a\nsm_120a\nsm_75\n");
}

TEST_F(FallbackTest, TornEntryIsMadeAgain) {
  EXPECT_OK(create().status());
  std::string path = entry(), whole = readText(path);
  writeText(path, whole.substr(0, whole.size() / 2));
  EXPECT_EQ((*create())->origin(), ImageOrigin::Compiled);
  EXPECT_EQ(readText(path), whole);
}

TEST_F(FallbackTest, PtxComesFirst) {
  writePtx();
  auto instance = create();
  ASSERT_TRUE(instance) << instance.status().message();
  EXPECT_EQ((*instance)->origin(), ImageOrigin::Ptx);
  EXPECT_EQ((*instance)->arch(), "compute_80");
  EXPECT_EQ(driver.device.image, ".version 8.0 // ptx");
  // A driver too old for the PTX.
  driver.device.ptxResult = 222;
  EXPECT_EQ((*create())->origin(), ImageOrigin::Compiled);
  // A cubin that fits is preferred to both.
  driver.device.major = 9;
  writeText(folder / "kernel.sm_90a.cubin", sampleCubin("cubin"));
  EXPECT_EQ((*create())->origin(), ImageOrigin::Cubin);
}

TEST_F(FallbackTest, SaysWhatWasTried) {
  writePtx();
  writeText(folder / "k.ptx", "none");
  writeText(folder / "kernel.cu", "syntax error");
  expectFailure(create().status(), MEGALITH_NO_KERNEL,
                {"no kernel for device sm_120 (Fake GPU); bundle has: sm_80, "
                 "sm_90a; ptx: compute_80",
                 "k.ptx': not ptx", "FAKE_NVRTC_ERROR", "fake log"});
  std::filesystem::remove(folder / "kernel.cu");
  expectFailure(create().status(), MEGALITH_NO_KERNEL,
                {"cannot open", "kernel.cu"});
  writeText(folder / "kernel.cu", "// the text");
  writeText(folder / "image", "no cubin");
  expectFailure(create().status(), MEGALITH_NO_KERNEL,
                {"kernel.cu' for sm_120a: not a cubin"});
  EXPECT_FALSE(std::filesystem::exists(folder / "cache"));
  {
    Setting absent("MEGALITH_NVRTC", folder / "absent.so");
    expectFailure(create().status(), MEGALITH_NO_KERNEL,
                  {"nvrtc could not be opened"});
  }
  Setting off("MEGALITH_JIT", "off");
  expectFailure(create().status(), MEGALITH_NO_KERNEL,
                {"MEGALITH_JIT forbids"});
}

TEST_F(FallbackTest, FilesMustBeThoseOfTheManifest) {
  driver.device.major = 9;
  std::string cubin = sampleCubin("cubin");
  writeText(folder / "kernel.sm_90a.cubin", cubin);
  std::string files =
      "\"files\": {\"kernel.sm_90a.cubin\": \"" + sha256(cubin) + "\"}";
  write(replaced(sampleManifest(), "\"schedule\": {}", files));
  EXPECT_OK(create().status());
  // One bit, in a place where any value is a good ELF file.
  cubin[cubin.find("cubin")] ^= 1;
  writeText(folder / "kernel.sm_90a.cubin", cubin);
  expectFailure(create().status(), MEGALITH_BAD_FORMAT,
                {"kernel.sm_90a.cubin': sha-256 is"});
  // A cubin for the device that is broken is no reason to run another.
  writeText(folder / "kernel.sm_90a.cubin", "");
  write(sampleManifest());
  expectFailure(create().status(), MEGALITH_BAD_FORMAT, {"not a cubin"});
}

TEST_F(FallbackTest, NoLinkLeadsOut) {
  driver.device.major = 9;
  TemporaryFolder outside;
  writeText(outside / "cubin", sampleCubin("cubin"));
  std::filesystem::create_symlink(outside / "cubin",
                                  folder / "kernel.sm_90a.cubin");
  expectFailure(create().status(), MEGALITH_IO_ERROR,
                {"kernel.sm_90a.cubin' is a symbolic link"});
  std::filesystem::rename(folder / "manifest.json", outside / "manifest.json");
  std::filesystem::create_symlink(outside / "manifest.json",
                                  folder / "manifest.json");
  expectFailure(loadBundle(folder.path).status(), MEGALITH_IO_ERROR,
                {"manifest.json' is a symbolic link"});
}

TEST(ChoosePtx, RunsOnNewerDevices) {
  Manifest manifest;
  manifest.ptx = {{"compute_80", "a", 80, false},
                  {"compute_90", "b", 90, false},
                  {"compute_90a", "c", 90, true}};
  EXPECT_EQ(choosePtx(manifest, 75), nullptr);
  EXPECT_EQ(choosePtx(manifest, 89)->arch, "compute_80");
  EXPECT_EQ(choosePtx(manifest, 90)->arch, "compute_90a");
  EXPECT_EQ(choosePtx(manifest, 100)->arch, "compute_90");
}
