// SPDX-License-Identifier: Apache-2.0

#include "Fiber.h"

#include "Error.h"

#include <sys/mman.h>

using namespace megalith;
using namespace megalith::sim;

#if !defined(__x86_64__) || !defined(__linux__)
#error "the simulator switches threads by hand, for x86-64 Linux only"
#endif

asm(R"(
  .text
  .globl megalithSimSwitch
  .hidden megalithSimSwitch
  .type megalithSimSwitch, @function
megalithSimSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
  .size megalithSimSwitch, .-megalithSimSwitch
)");

StackPool::StackPool(size_t count, size_t bytes) : count(count), bytes(bytes) {
  void *memory = ::mmap(nullptr, count * bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    fail(MEGALITH_RESOURCE_LIMIT, "no address space for {} stacks of {} bytes",
         count, bytes);
  // A huge page a stack would be a hundred times what it needs.
  ::madvise(memory, count * bytes, MADV_NOHUGEPAGE);
  base = static_cast<uint8_t *>(memory);
}

StackPool::~StackPool() { ::munmap(base, count * bytes); }

void *StackPool::prepare(size_t index, void (*entry)()) {
  uint8_t *stack = base + index * bytes;
  uint64_t *top = reinterpret_cast<uint64_t *>(stack + bytes);
  // Each stack's hot lines start elsewhere, or all would share cache sets.
  top -= (index % 64) * 8;
  // As after a call: the return address lies 8 bytes off a 16-byte boundary.
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(entry);
  for (int saved = 0; saved < 6; ++saved)
    *--top = 0;
  return top;
}

bool StackPool::intact(size_t index) const {
  const uint8_t *stack = base + index * bytes;
  unsigned char resident = 0;
  ::mincore(const_cast<uint8_t *>(stack), 4096, &resident);
  return (resident & 1) == 0;
}
