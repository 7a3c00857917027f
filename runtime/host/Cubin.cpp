// SPDX-License-Identifier: Apache-2.0

#include "Cubin.h"

#include "Error.h"

#include <cstdint>
#include <cstring>

#include <elf.h>

using namespace megalith;

namespace {

/// EM_CUDA; older elf.h do not name it.
constexpr uint16_t machineCuda = 190;

/// Bounds of one file.
class Image {
public:
  Image(std::string_view bytes, const std::string &label)
      : bytes(bytes), label(label) {}

  /// Throws unless [offset, offset + size) lies inside.
  void expectInside(const char *what, uint64_t index, uint64_t offset,
                    uint64_t size) const {
    if (offset > bytes.size() || size > bytes.size() - offset)
      fail(MEGALITH_BAD_FORMAT,
           "{}: {} {} has {} bytes at {}, beyond the file's {}", label, what,
           index, size, offset, bytes.size());
  }

  /// A structure at `offset`, which must lie inside.
  template <typename T>
  T read(const char *what, uint64_t index, uint64_t offset) const {
    expectInside(what, index, offset, sizeof(T));
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }

  /// Throws unless a table has entries of the right size.
  void expectEntry(const char *what, uint64_t found, uint64_t wanted) const {
    if (found != wanted)
      fail(MEGALITH_BAD_FORMAT, "{}: {}s have {} bytes, expected {}", label,
           what, found, wanted);
  }

private:
  std::string_view bytes;
  const std::string &label;
};

} // namespace

void megalith::checkCubin(std::string_view bytes, const std::string &label) {
  if (bytes.size() < sizeof(Elf64_Ehdr) ||
      std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
    fail(MEGALITH_BAD_FORMAT, "{}: not a cubin: {} bytes without an elf header",
         label, bytes.size());
  Image image(bytes, label);
  auto header = image.read<Elf64_Ehdr>("header", 0, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != machineCuda)
    fail(MEGALITH_BAD_FORMAT,
         "{}: not a cubin: elf class {}, byte order {}, machine {}, expected "
         "{}, {}, {}",
         label, header.e_ident[EI_CLASS], header.e_ident[EI_DATA],
         header.e_machine, ELFCLASS64, ELFDATA2LSB, machineCuda);

  if (header.e_phnum != 0)
    image.expectEntry("program header", header.e_phentsize, sizeof(Elf64_Phdr));
  if (header.e_phoff > bytes.size() || header.e_shoff > bytes.size())
    fail(MEGALITH_BAD_FORMAT,
         "{}: header tables at {} and {} are beyond the file's {} bytes", label,
         header.e_phoff, header.e_shoff, bytes.size());
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    auto segment = image.read<Elf64_Phdr>(
        "program header", i, header.e_phoff + i * sizeof(Elf64_Phdr));
    image.expectInside("segment", i, segment.p_offset, segment.p_filesz);
  }

  if (header.e_shnum == 0 || header.e_shstrndx >= header.e_shnum)
    fail(MEGALITH_BAD_FORMAT,
         "{}: {} sections, names in section {}, expected some with their names",
         label, header.e_shnum, header.e_shstrndx);
  image.expectEntry("section header", header.e_shentsize, sizeof(Elf64_Shdr));
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    auto section = image.read<Elf64_Shdr>(
        "section header", i, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL)
      continue;
    image.expectInside("section", i, section.sh_offset, section.sh_size);
    // Names are read up to their NUL.
    if (section.sh_type == SHT_STRTAB && section.sh_size != 0 &&
        bytes[section.sh_offset + section.sh_size - 1] != '\0')
      fail(MEGALITH_BAD_FORMAT, "{}: string table {} does not end with a nul",
           label, i);
  }
}

void megalith::checkPtx(std::string_view text, const std::string &label) {
  size_t nul = text.find('\0');
  if (nul != std::string_view::npos)
    fail(MEGALITH_BAD_FORMAT, "{}: not ptx: byte {} is a nul", label, nul);
  if (text.find(".version") == std::string_view::npos)
    fail(MEGALITH_BAD_FORMAT, "{}: not ptx: no .version directive", label);
}
