// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel under audit, on whatever it runs, and the reference beside it.
/// Failures are megalith::Error.

#ifndef MEGA_TOOLS_AUDIT_SUBJECT_H
#define MEGA_TOOLS_AUDIT_SUBJECT_H

#include "Error.h"

#include "mega/runtime/Instance.h"
#include "mega/runtime/Simulator.h"
#include "mega/runtime/TensorMap.h"

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace mega::audit {

using megalith::Tensor;
using megalith::TensorMap;

/// What a sequence starts from.
struct Start {
  TensorMap states;
  int64_t position = 0;
};

/// What a router chose.
struct Choice {
  std::string probe;
  std::vector<int32_t> ids;
  /// How far the reference is from another choice; infinite if not known.
  float gap = std::numeric_limits<float>::infinity();
};

/// One instance. Not thread-safe.
class Subject {
public:
  virtual ~Subject() = default;

  virtual const megalith::Manifest &manifest() const = 0;
  /// Who runs it, for the report.
  virtual std::string name() const = 0;
  /// Another instance with the same weights.
  virtual std::unique_ptr<Subject> another(int64_t rows) const = 0;

  virtual void reset() = 0;
  virtual void setState(const std::string &name, const Tensor &value) = 0;
  /// A cache has as many rows as the position.
  virtual Tensor state(const megalith::StateDesc &desc) = 0;
  virtual void setPosition(int64_t position) = 0;
  virtual int64_t position() const = 0;
  /// Overwrites packed weights.
  virtual void writeWeights(uint64_t offset, const void *data,
                            uint64_t bytes) = 0;
  /// One token, from and to host memory. `out` is set on success.
  virtual megalith::Status tryStep(const Tensor &hidden, Tensor &out) = 0;
  /// What the last step left in the bundle's i32 probes, but for the runtime's
  /// own.
  virtual std::vector<Choice> choices() = 0;
  /// Makes the next steps as different from the last as may be: another
  /// schedule on a simulator, nothing on a GPU.
  virtual void disturb(uint64_t seed) {}

  /// tryStep, or throws.
  Tensor step(const Tensor &hidden);
  /// Starts a sequence.
  void begin(const Start &start);
};

/// What the block's description says.
class Oracle {
public:
  virtual ~Oracle() = default;
  /// Replaces the states given and the position, and keeps the others.
  virtual void begin(const Start &start) = 0;
  virtual Tensor step(const Tensor &hidden) = 0;
  /// What the routers chose in the last step.
  virtual std::vector<Choice> choices() = 0;
};

/// The operations that both kinds of instance have.
template <typename InstanceT> class KernelSubject : public Subject {
public:
  explicit KernelSubject(std::unique_ptr<InstanceT> made)
      : instance(std::move(made)) {}

  const megalith::Manifest &manifest() const override {
    return instance->bundle().manifest;
  }
  void reset() override { megalith::check(instance->reset()); }
  void setState(const std::string &name, const Tensor &value) override {
    megalith::check(instance->setState(name, value.data, value.bytes));
  }
  Tensor state(const megalith::StateDesc &desc) override {
    std::vector<int64_t> shape = desc.shape;
    if (desc.isCache())
      shape[0] = instance->position();
    uint8_t *bytes;
    Tensor value = Tensor::allocate(desc.dtype, shape, &bytes);
    megalith::check(instance->getState(desc.name, bytes, value.bytes));
    return value;
  }
  void setPosition(int64_t position) override {
    megalith::check(instance->setPosition(position));
  }
  int64_t position() const override { return instance->position(); }
  void writeWeights(uint64_t offset, const void *data,
                    uint64_t bytes) override {
    megalith::check(instance->writeWeights(offset, data, bytes));
  }
  megalith::Status tryStep(const Tensor &hidden, Tensor &out) override {
    const megalith::TensorDesc &desc = manifest().output;
    uint8_t *bytes;
    Tensor made = Tensor::allocate(desc.dtype, desc.shape, &bytes);
    megalith::Status status = instance->stepHost(hidden.data, bytes);
    if (status.ok())
      out = made;
    return status;
  }
  std::vector<Choice> choices() override {
    std::vector<Choice> all;
    for (const megalith::ProbeDesc &probe : manifest().probes) {
      if (probe.tensor.dtype != megalith::DType::I32 ||
          probe.tensor.name.rfind("megalith.", 0) == 0)
        continue;
      std::vector<int32_t> ids(probe.tensor.bytes / sizeof(int32_t));
      megalith::check(instance->readProbe(probe.tensor.name, ids.data(),
                                          probe.tensor.bytes));
      all.push_back({probe.tensor.name, std::move(ids)});
    }
    return all;
  }

protected:
  std::unique_ptr<InstanceT> instance;
};

/// On a GPU. Instances that share weights, and none of whose waits is longer
/// than `watchdog`.
class GpuSubject : public KernelSubject<megalith::Instance> {
public:
  GpuSubject(std::unique_ptr<megalith::Instance> made,
             std::chrono::milliseconds watchdog);
  std::string name() const override;
  std::unique_ptr<Subject> another(int64_t rows) const override;
  megalith::Instance &get() { return *instance; }

private:
  std::chrono::milliseconds watchdog;
};

/// How the simulator runs.
struct SimChoices {
  int ctas = 0;       ///< 0 for its own choice
  bool races = false; ///< whether it checks every access
};

/// On the simulator. `weights` must outlive it and what `another` makes.
class SimSubject : public KernelSubject<megalith::SimInstance> {
public:
  /// Compiles the bundle's kernel.cu, whatever the manifest's digest says.
  static std::unique_ptr<SimSubject>
  create(std::shared_ptr<const megalith::Bundle> bundle,
         const TensorMap &weights, int64_t rows, const SimChoices &choices);
  std::string name() const override;
  std::unique_ptr<Subject> another(int64_t rows) const override;
  void disturb(uint64_t seed) override;

private:
  SimSubject(std::unique_ptr<megalith::SimInstance> made,
             std::shared_ptr<const megalith::Bundle> bundle,
             std::shared_ptr<megalith::SimKernel> kernel,
             const TensorMap &weights, const SimChoices &choices);
  std::shared_ptr<const megalith::Bundle> bundle;
  std::shared_ptr<megalith::SimKernel> kernel;
  const TensorMap &weights;
  SimChoices choices;
};

} // namespace mega::audit

#endif // MEGA_TOOLS_AUDIT_SUBJECT_H
