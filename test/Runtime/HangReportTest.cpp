// SPDX-License-Identifier: Apache-2.0

#include "HangReport.h"
#include "Support.h"

#include <cstring>

using namespace megalith;

namespace {

/// Four CTAs, three phases, and whatever `probe` and `persistent` say.
class HangReport : public ::testing::Test {
protected:
  HangReport() : workspace(512) {
    manifest.workspaceBytes = workspace.size();
    manifest.phases = {{{"norm"}}, {{"q", "k"}}, {{"out"}}};
    manifest.persistent = {{0, 16, "grid_barrier", "", 0}};
  }
  void addProbe(const char *name, std::vector<int64_t> shape) {
    ProbeDesc probe;
    probe.tensor = {name, DType::I32, shape, *tensorBytes(DType::I32, shape)};
    probe.offset = 64;
    manifest.probes.push_back(probe);
  }
  void set(uint64_t offset, std::vector<uint32_t> words) {
    std::memcpy(workspace.data() + offset, words.data(), 4 * words.size());
  }
  std::string describe() { return describeHang(manifest, 4, workspace); }

  Manifest manifest;
  std::vector<uint8_t> workspace;
};

void expectPart(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "no '" << part << "' in: " << text;
}

} // namespace

TEST_F(HangReport, CountsArrivals) {
  expectPart(describe(), "nobody waits");
  set(0, {0x80000000u}); // an odd number of barriers passed
  expectPart(describe(), "nobody waits");
  set(0, {0x80000003u});
  expectPart(describe(), "3 of 4 ctas have arrived, cta 0 is not among them");
  set(0, {0x80000000u - 3 + 2}); // CTA 0's step, and two more
  expectPart(describe(), "3 of 4 ctas have arrived, cta 0 is among them");
  set(0, {0x00001234u});
  expectPart(describe(), "none that 4 ctas can make");
}

TEST_F(HangReport, NamesCounters) {
  manifest.persistent = {{256, 64, "counters", "q -> delta", 4}};
  expectPart(describe(), "counters 'q -> delta': all are 0");
  set(256 + 16, {5});
  set(256 + 48, {1});
  expectPart(describe(),
             "counters 'q -> delta': 2 of 4 are not 0: [1] = 5, [3] = 1");
}

TEST_F(HangReport, SaysIfItCannotTell) {
  manifest.persistent.reset();
  EXPECT_EQ(describe(), "the bundle keeps no word of progress (megalithc "
                        "--instrument makes one that does)");
}

TEST_F(HangReport, ReadsProgress) {
  addProbe(progressProbe, {4});
  set(64, {3, 2, 3, 0});
  EXPECT_EQ(describe(),
            "1 of 4 ctas before the first phase (3); "
            "1 of 4 ctas in phase 1 ('q', 'k') (1); "
            "2 of 4 ctas in phase 2 ('out') (0, 2); "
            "grid barrier at workspace + 0: nobody waits (counter 0x0)");
}

TEST_F(HangReport, ReadsStampsOfThisLaunch) {
  addProbe(stampsProbe, {3, 6, 2}); // room for six CTAs, four launched
  auto stamp = [&](int phase, int cta, uint32_t begin, uint32_t end) {
    set(64 + (phase * 4 + cta) * 8, {begin, end});
  };
  // The last launch ended about 1000; this one's clocks wrap.
  for (int cta = 0; cta < 4; ++cta)
    for (int phase = 0; phase < 3; ++phase)
      stamp(phase, cta, 0xfffff000u + 16 * phase, 0xfffff008u + 16 * phase);
  for (int cta = 0; cta < 4; ++cta)
    stamp(0, cta, 0xfffffff0u, 8);
  stamp(1, 0, 20, 30);
  stamp(1, 1, 20, 0xfffff018u); // begun, not ended
  stamp(1, 2, 20, 30);
  std::string text = describe();
  expectPart(text, "1 of 4 ctas behind phase 0 ('norm') (3)");
  expectPart(text, "1 of 4 ctas in phase 1 ('q', 'k') (1)");
  expectPart(text, "2 of 4 ctas behind phase 1 ('q', 'k') (0, 2)");
}

TEST_F(HangReport, IgnoresProbesOfAnotherShape) {
  addProbe(progressProbe, {3});
  addProbe(stampsProbe, {3, 2, 2});
  expectPart(describe(), "no word of progress");
}
