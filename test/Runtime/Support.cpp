// SPDX-License-Identifier: Apache-2.0

#include "Support.h"

#include "mega/runtime/RandomInit.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <elf.h>

using namespace megalith;

TemporaryFolder::TemporaryFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "megalith-XXXXXX").string();
  if (!::mkdtemp(pattern.data()))
    std::abort();
  path = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

void writeText(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  ASSERT_TRUE(file.flush().good()) << path;
}

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string sampleManifest() {
  std::ifstream file(MEGALITH_TEST_INPUTS "/sample.bundle/manifest.json");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_FALSE(text.empty());
  return text;
}

std::string sampleCubin(const std::string &marker) {
  // Header, marker, names, then two section headers: none, and the names.
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = 190; // EM_CUDA
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shstrndx = 1;
  Elf64_Shdr sections[2] = {};
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = marker.size() + 1;
  header.e_shoff = sizeof header + marker.size() + 1;
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof header);
  bytes += marker;
  bytes += '\0';
  bytes.append(reinterpret_cast<const char *>(sections), sizeof sections);
  return bytes;
}

Manifest parsedSample() {
  Result<Manifest> manifest = parseManifest(sampleManifest(), "sample");
  EXPECT_OK(manifest.status());
  return *manifest;
}

TensorMap sampleTensors() {
  Result<TensorMap> map = randomWeights(parsedSample(), 1);
  EXPECT_OK(map.status());
  return *map;
}

void expectFailure(const Status &status, megalith_status code,
                   std::initializer_list<const char *> parts) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const char *part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "no '" << part << "' in: " << status.message();
}
