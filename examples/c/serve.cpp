// SPDX-License-Identifier: Apache-2.0
//
// Several sequences at once from one set of weights: an instance and a thread
// each.
//
//   serve BUNDLE [WEIGHTS.safetensors [SEQUENCES [TOKENS [PREFIX]]]]
//
// Without weights it only describes the bundle. An engine would step each
// instance on a stream of its own, from one thread or many.

#include "mega/runtime/megalith.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

using megalith_api::Bundle;
using megalith_api::Instance;
using megalith_api::TensorInfo;

/// Decodes from a token of its own; what it throws is left in `failure`.
static void decode(Instance &instance, const Bundle &bundle, int sequence,
                   int tokens, std::exception_ptr &failure) {
  try {
    std::vector<unsigned char> hidden(bundle.input().bytes()),
        out(bundle.output().bytes());
    // Some token that differs from sequence to sequence: a one.
    std::size_t element = megalith_dtype_bytes(bundle.input().dtype);
    std::size_t at = (std::size_t(sequence) * element) % hidden.size();
    hidden[at + element - 1] = 0x3f;
    hidden[at + element - 2] = 0x80;
    for (int token = 0; token < tokens; ++token) {
      instance.stepHost(hidden.data(), out.data());
      if (out.size() == hidden.size())
        hidden = out;
    }
  } catch (...) {
    failure = std::current_exception();
  }
}

static void serve(const Bundle &bundle, const std::string &weights,
                  int sequences, int tokens, const std::string &prefix) {
  std::vector<Instance> instances;
  instances.emplace_back(bundle, 0, tokens);
  instances[0].bindSafetensors(weights, prefix);
  instances[0].weightsReady();
  while (int(instances.size()) < sequences)
    instances.push_back(instances[0].share(tokens));

  std::vector<std::exception_ptr> failures(instances.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < instances.size(); ++i)
    threads.emplace_back(decode, std::ref(instances[i]), std::cref(bundle),
                         int(i), tokens, std::ref(failures[i]));
  for (std::thread &thread : threads)
    thread.join();
  for (const std::exception_ptr &failure : failures)
    if (failure)
      std::rethrow_exception(failure);
  for (Instance &instance : instances)
    std::printf("a sequence at position %lld\n",
                (long long)instance.position());
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 6) {
    std::fprintf(stderr, "usage: serve BUNDLE [WEIGHTS.safetensors [SEQUENCES "
                         "[TOKENS [PREFIX]]]]\n");
    return 2;
  }
  try {
    Bundle bundle(argv[1]);
    std::size_t bytes = 0;
    for (const TensorInfo &tensor : bundle.tensors())
      bytes += tensor.bytes();
    std::printf("block %s: %zu states, %.1f MB of weights\n",
                bundle.block().c_str(), bundle.states().size(), bytes / 1e6);
    if (argc > 2)
      serve(bundle, argv[2], argc > 3 ? std::atoi(argv[3]) : 2,
            argc > 4 ? std::atoi(argv[4]) : 4, argc > 5 ? argv[5] : "");
  } catch (const megalith_api::Error &error) {
    std::fprintf(stderr, "serve: %s: %s\n",
                 megalith_status_name(error.status()), error.what());
    return 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "serve: %s\n", error.what());
    return 1;
  }
  return 0;
}
