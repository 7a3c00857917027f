// SPDX-License-Identifier: Apache-2.0
/// \file
/// Warp instructions: lanes gather, the last one computes for all.

#include "Machine.h"

#include "Error.h"

#include <algorithm>
#include <cstring>

using namespace megalith;
using namespace megalith::sim;

static const char *nameOf(WarpOp op) {
  switch (op) {
  case WarpOp::None:
    return "nothing";
  case WarpOp::Sync:
    return "__syncwarp";
  case WarpOp::Shuffle:
    return "a shuffle";
  case WarpOp::Ballot:
    return "a vote";
  case WarpOp::Mma:
    return "mma";
  case WarpOp::Ldmatrix:
    return "ldmatrix";
  }
  return "";
}

bool Machine::gather(WarpOp op, uint32_t detail, uint32_t mask,
                     const void *code) {
  Warp &warp = warpOf(current->key);
  const uint32_t bit = 1u << current->key.lane();
  if (!(mask & bit)) {
    report(SimReport::Kind::Divergence, code,
           fmt::format("lane {} executes {} with the mask {:#x}, which does "
                       "not have it",
                       current->key.lane(), nameOf(op), mask));
    stop();
  }
  if (warp.arrived == 0) {
    warp.op = op;
    warp.detail = detail;
    warp.mask = mask;
  } else if (warp.op != op || warp.detail != detail || warp.mask != mask) {
    report(SimReport::Kind::Divergence, code,
           fmt::format("lane {} executes {} (mask {:#x}) while lanes {:#x} of "
                       "its warp wait in {} (mask {:#x})",
                       current->key.lane(), nameOf(op), mask, warp.arrived,
                       nameOf(warp.op), warp.mask));
    stop();
  }
  warp.slots[current->key.lane()].code = code;
  warp.arrived |= bit;
  if (warp.arrived == mask)
    return true;
  block(State::Warp, code);
  return false;
}

/// Lets the other lanes go on.
void Machine::release(Warp &warp) {
  const ThreadKey key = current->key;
  const uint32_t others = warp.mask & ~(1u << key.lane());
  for (uint32_t rest = others; rest != 0; rest &= rest - 1)
    thread(key.cta(), key.warp() * 32 + __builtin_ctz(rest)).state =
        State::Runnable;
  scheduler.wake(key.cta(), key.warp(), others);
  warp.arrived = 0;
}

void Machine::syncWarp(uint32_t mask, const void *code) {
  if (!gather(WarpOp::Sync, 0, mask, code))
    return;
  Warp &warp = warpOf(current->key);
  if (shadow) {
    uint32_t waiting[32] = {}, passing[32] = {};
    waiting[current->key.warp()] = mask;
    synchronize(waiting, passing);
  }
  release(warp);
}

uint32_t Machine::shuffle(ShuffleKind kind, uint32_t mask, uint32_t value,
                          uint32_t operand, uint32_t width, const void *code) {
  Warp &warp = warpOf(current->key);
  Slot &own = warp.slots[current->key.lane()];
  own.value = value;
  own.operand = operand;
  own.width = width;
  if (!gather(WarpOp::Shuffle, unsigned(kind), mask, code))
    return own.out;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const unsigned lane = __builtin_ctz(rest);
    Slot &slot = warp.slots[lane];
    const int span = int(slot.width), first = int(lane) / span * span;
    const int end = first + span;
    int source = int(lane);
    switch (kind) {
    case ShuffleKind::Index:
      source = first + int(slot.operand) % span;
      break;
    case ShuffleKind::Up:
      source -= int(slot.operand);
      source = source < first ? int(lane) : source;
      break;
    case ShuffleKind::Down:
      source += int(slot.operand);
      source = source >= end ? int(lane) : source;
      break;
    case ShuffleKind::Xor:
      source ^= int(slot.operand);
      source = source >= end ? int(lane) : source;
      break;
    }
    if (!(mask >> source & 1))
      report(SimReport::Kind::Divergence, code,
             fmt::format("lane {} shuffles from lane {}, which the mask {:#x} "
                         "does not have",
                         lane, source, mask));
    slot.out = warp.slots[source].value;
  }
  release(warp);
  return own.out;
}

uint32_t Machine::ballot(uint32_t mask, bool value, const void *code) {
  Warp &warp = warpOf(current->key);
  Slot &own = warp.slots[current->key.lane()];
  own.value = value;
  if (!gather(WarpOp::Ballot, 0, mask, code))
    return own.out;
  uint32_t votes = 0;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
    votes |= warp.slots[__builtin_ctz(rest)].value << __builtin_ctz(rest);
  for (Slot &slot : warp.slots)
    slot.out = votes;
  release(warp);
  return own.out;
}

static float widen(uint32_t bits) {
  bits <<= 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

void Machine::mma16816(float *d, const uint32_t *a, const uint32_t *b,
                       const void *code) {
  Warp &warp = warpOf(current->key);
  Slot &own = warp.slots[current->key.lane()];
  own.d = d;
  own.a = a;
  own.b = b;
  if (!gather(WarpOp::Mma, 0, ~0u, code))
    return;
  // Fragments of the PTX ISA: g = lane / 4 is a row of A and D and a column of
  // B, t = lane % 4 chooses the pair of inner indices or of D's columns.
  float left[16][16], right[16][8], sum[16][8];
  for (unsigned lane = 0; lane < 32; ++lane) {
    const Slot &slot = warp.slots[lane];
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = g + i % 2 * 8, column = 2 * t + i / 2 * 8;
      left[row][column] = widen(slot.a[i] & 0xffff);
      left[row][column + 1] = widen(slot.a[i] >> 16);
      sum[g + i / 2 * 8][2 * t + i % 2] = slot.d[i];
    }
    for (unsigned i = 0; i < 2; ++i) {
      right[2 * t + i * 8][g] = widen(slot.b[i] & 0xffff);
      right[2 * t + i * 8 + 1][g] = widen(slot.b[i] >> 16);
    }
  }
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned column = 0; column < 8; ++column)
        sum[row][column] += left[row][k] * right[k][column];
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i)
      warp.slots[lane].d[i] = sum[g + i / 2 * 8][2 * t + i % 2];
  }
  release(warp);
}

void Machine::ldmatrix(uint32_t *out, const void *row, unsigned matrices,
                       bool transposed, const void *code) {
  Warp &warp = warpOf(current->key);
  Slot &own = warp.slots[current->key.lane()];
  own.words = out;
  own.row = row;
  // Each row is read by the lane that names it.
  if (shadow && current->key.lane() < matrices * 8)
    read(row, 16, LoadKind::Plain, code);
  if (!gather(WarpOp::Ldmatrix, matrices * 2 + transposed, ~0u, code))
    return;
  for (unsigned matrix = 0; matrix < matrices; ++matrix)
    for (unsigned lane = 0; lane < 32; ++lane) {
      uint32_t word = 0;
      for (unsigned half = 0; half < 2; ++half) {
        unsigned r = lane / 4, c = lane % 4 * 2 + half;
        if (transposed)
          std::swap(r, c);
        uint16_t element;
        std::memcpy(
            &element,
            static_cast<const uint8_t *>(warp.slots[matrix * 8 + r].row) +
                c * 2,
            2);
        word |= uint32_t(element) << (16 * half);
      }
      warp.slots[lane].words[matrix] = word;
    }
  release(warp);
}
