// SPDX-License-Identifier: Apache-2.0
// Umbrella for add_mlir_dialect.
#ifndef MEGA_TD
#define MEGA_TD

include "MegaDialect.td"
include "MegaEnums.td"
include "MegaTypes.td"
include "MegaAttrs.td"
include "MegaInterfaces.td"
include "MegaBlockOps.td"
include "MegaStageOps.td"
include "MegaScheduleOps.td"

#endif // MEGA_TD
