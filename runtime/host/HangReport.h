// SPDX-License-Identifier: Apache-2.0
//
// What a workspace tells of a launch that does not end. Pure: no device.

#ifndef MEGA_RUNTIME_HOST_HANGREPORT_H
#define MEGA_RUNTIME_HOST_HANGREPORT_H

#include "mega/runtime/Manifest.h"

#include <cstdint>
#include <string>
#include <vector>

namespace megalith {

/// Names of probes that say where each CTA is. docs/bundle-format.md.
constexpr const char *progressProbe = "megalith.progress";
constexpr const char *stampsProbe = "megalith.stamps";

/// Where the CTAs of a launch of `grid` are, by phase and stage names, and how
/// many have arrived at each grid barrier; says so if the bundle cannot tell.
/// `workspace` has the manifest's bytes.
std::string describeHang(const Manifest &manifest, int grid,
                         const std::vector<uint8_t> &workspace);

} // namespace megalith

#endif
