// What all ranks must have in common before anything heavy: the build, the options, the scenes, the model. Also how
// they decide together whether a step succeeded everywhere, so that no rank waits for one that gave up.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "parallel/cluster.h"
#include "parallel/communicator.h"

namespace h3 {

// A hash of this program's executable file.
std::string build_id();

// Runs `check` on every rank of the world and throws the lowest failing rank's UserError on all of them. Whatever reads
// input belongs inside: a rank that left alone would keep the others waiting. Other exceptions pass.
void together(const Cluster& cluster, const std::function<void()>& check);

// Compares `facts` (field -> value) with rank 0's on every rank. Throws UserError on every rank when any differs; it
// names the field, the hosts and both values: of JSON objects the key that differs, else the text around the first
// difference.
void require_agreement(Communicator& communicator, const std::string& host,
                       const std::map<std::string, std::string>& facts);

// Each rank brings its error ("" for none). Returns the lowest failing rank's, as "rank R on HOST: ERROR" when there
// are several ranks, or "".
std::string first_error(Communicator& communicator, const std::string& host, const std::string& error);

}  // namespace h3
