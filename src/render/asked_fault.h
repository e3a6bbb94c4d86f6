// A fault that a test asks for with --fail: where one rank enters a stage it fails, hangs, or loses time.
#pragma once

#include <string>

namespace h3 {

struct AskedFault {
  int rank = -1;  // none
  std::string stage;
  bool fails = false;
  double seconds = 0;  // lost there, every time

  // Throws RunError, or sleeps, where this rank and stage are meant.
  void happen(int at_rank, const std::string& at_stage) const;
};

// "RANK:STAGE" fails, "RANK:STAGE:hang" never goes on, "RANK:STAGE:SECONDS" loses time; "" is none. Stages: validate,
// load, media, text, encode, step, decode. Throws UserError naming `option`.
AskedFault parse_asked_fault(const std::string& text, const std::string& option);

}  // namespace h3
