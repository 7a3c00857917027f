// SPDX-License-Identifier: Apache-2.0
//
// What every kind of instance, on a GPU or on the simulator, must check alike
// before it touches anything. All throw Error.

#ifndef MEGA_RUNTIME_HOST_INSTANCECHECKS_H
#define MEGA_RUNTIME_HOST_INSTANCECHECKS_H

#include "WeightBinder.h"
#include "mega/runtime/Manifest.h"
#include "mega/runtime/TensorMap.h"

#include <string>
#include <vector>

namespace megalith {

/// The index of a state; NOT_FOUND.
size_t findState(const Manifest &manifest, const std::string &name);

/// A probe that is to be read into `bytes` bytes at `data`; NOT_FOUND,
/// INVALID_ARGUMENT.
const ProbeDesc &findProbe(const Manifest &manifest, const std::string &name,
                           const void *data, uint64_t bytes);

/// Throws unless a copy of `bytes` bytes between host memory at `data` and the
/// state is allowed; the state has `allocated` bytes, 0 for a cache without
/// memory. INVALID_ARGUMENT, NOT_READY, CAPACITY.
void expectStateCopy(const StateDesc &desc, uint64_t allocated,
                     const void *data, uint64_t bytes);

/// What the addresses of vectors and states are multiples of.
constexpr uint64_t addressAlignment = 16;

/// Throws unless `bytes` bytes of the caller's at `address` can be the state's
/// memory, with `position` rows of a cache. INVALID_ARGUMENT, CAPACITY.
void expectStateMemory(const StateDesc &desc, uint64_t address, uint64_t bytes,
                       int64_t position);

/// Throws unless `position` is in 0..capacity. INVALID_ARGUMENT, CAPACITY.
void expectPosition(int64_t position, int64_t capacity);

/// Throws unless one more token fits behind `position`. CAPACITY.
void expectRoom(int64_t position, int64_t capacity);

/// The tensors of `map` named `prefix` + a manifest's tensor name, without the
/// prefix; NOT_FOUND if there is none.
std::vector<WeightBinder::NamedTensor> selectTensors(const Manifest &manifest,
                                                     const WeightBinder &binder,
                                                     const TensorMap &map,
                                                     const std::string &prefix);

} // namespace megalith

#endif
