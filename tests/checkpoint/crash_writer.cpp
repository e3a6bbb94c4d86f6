// Writes checkpoints of growing steps into a folder until it is killed, and tells on standard output (one step a line)
// which ones it knows to be safe. Goes on from what it finds.
#include <unistd.h>

#include <cstdio>

#include "checkpoint/resume.h"
#include "checkpoint/samples.h"
#include "checkpoint/writer.h"

int main(int argc, char** argv) {
  using namespace h3;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  const auto found = read_checkpoint(folder, "x");
  if (!found) write_inputs(folder, "x", test::sample_inputs(1));
  std::int64_t step = found ? found->state.step : 0;
  CheckpointWriter writer(folder, "x", {});
  while (++step <= test::kSampleSteps) {
    // Every third snapshot is not waited for, so that writes overlap with the next snapshot too.
    std::string error = writer.submit(test::sample_checkpoint(1, step, 2000));
    if (error.empty() && step % 3 != 0) error = writer.finish();
    if (!error.empty()) return 1;
    if (step % 3 == 0) continue;
    std::printf("%lld\n", static_cast<long long>(step));
    std::fflush(stdout);
  }
  return 0;
}
