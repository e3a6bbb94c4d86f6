// What all ranks must have in common before anything heavy: the build, the options, the scenes, the model. Also how
// they decide together whether a step succeeded everywhere, so that no rank waits for one that gave up.
#pragma once

#include <map>
#include <string>

#include "parallel/communicator.h"

namespace h3 {

// A hash of this program's executable file.
std::string build_id();

// Compares `facts` (field -> value) with rank 0's on every rank. Throws UserError on every rank when any differs; it
// names the field, the hosts and both values (the first 200 characters).
void require_agreement(Communicator& communicator, const std::string& host,
                       const std::map<std::string, std::string>& facts);

// Each rank brings its error ("" for none). Returns the lowest failing rank's, as "rank R on HOST: ERROR" when there
// are several ranks, or "".
std::string first_error(Communicator& communicator, const std::string& host, const std::string& error);

}  // namespace h3
