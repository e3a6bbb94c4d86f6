// A stretch of a thread's time with a name, shown by profilers (Nsight Systems) above the kernels that it started:
// stages of a render, operators. NVTX on builds with CUDA, where it costs a function call while no profiler looks;
// nothing on others.
#pragma once

namespace h3 {

class NamedRange {
 public:
#ifdef H3RENDER_WITH_CUDA
  explicit NamedRange(const char* name);
  ~NamedRange();
#else
  explicit NamedRange(const char*) {}
  ~NamedRange() {}
#endif
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;
};

}  // namespace h3
