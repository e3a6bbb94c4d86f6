#include "compute/named_range.h"

#include <nvtx3/nvToolsExt.h>

namespace h3 {

NamedRange::NamedRange(const char* name) {
  nvtxRangePushA(name);
}

NamedRange::~NamedRange() {
  nvtxRangePop();
}

}  // namespace h3
