// SPDX-License-Identifier: Apache-2.0

#include "Arena.h"

#include "Error.h"

#include <sys/mman.h>

#include <algorithm>

using namespace megalith;
using namespace megalith::sim;

/// Regions start at a multiple of it, at least as much apart.
static constexpr uint64_t gap = 256;

Arena::~Arena() {
  if (memory)
    ::munmap(memory, end);
}

size_t Arena::add(std::string name, RegionKind kind, uint64_t bytes) {
  Region region{std::move(name), kind, end + gap, bytes, 0};
  end = (region.offset + bytes + gap - 1) / gap * gap + gap;
  if (kind == RegionKind::Constant)
    constantEnd = end;
  regions.push_back(std::move(region));
  return regions.size() - 1;
}

void Arena::map() {
  void *mapped = ::mmap(nullptr, end, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    fail(MEGALITH_RESOURCE_LIMIT, "no memory for {} bytes of simulated memory",
         end);
  memory = static_cast<uint8_t *>(mapped);
}

const Region *Arena::find(uint64_t offset) const {
  auto after = std::upper_bound(
      regions.begin(), regions.end(), offset,
      [](uint64_t at, const Region &region) { return at < region.offset; });
  if (after == regions.begin())
    return nullptr;
  const Region &region = *std::prev(after);
  return offset - region.offset < region.bytes ? &region : nullptr;
}

void Arena::poison(size_t index) {
  uint16_t *first = reinterpret_cast<uint16_t *>(address(index));
  std::fill(first, first + regions[index].bytes / 2, poisonPattern);
}

std::string Arena::describe(uint64_t offset) const {
  if (const Region *region = find(offset))
    return fmt::format("byte {} of {}", offset - region->offset, region->name);
  auto after = std::upper_bound(
      regions.begin(), regions.end(), offset,
      [](uint64_t at, const Region &region) { return at < region.offset; });
  if (after == regions.begin())
    return fmt::format("{} bytes before {}", regions.front().offset - offset,
                       regions.front().name);
  const Region &region = *std::prev(after);
  return fmt::format("byte {} of {}, which has {}", offset - region.offset,
                     region.name, region.bytes);
}
