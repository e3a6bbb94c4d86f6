// Independent tasks on a few threads of this process: reading, converting and hashing weights.
#pragma once

#include <cstddef>
#include <functional>

namespace h3 {

// Runs task(0) ... task(count - 1), each once, in any order, on `threads` threads including the caller's. The first
// exception ends the work and is thrown again.
void run_tasks(std::size_t count, int threads, const std::function<void(std::size_t)>& task);

// Threads that one of `ranks` processes of this node should use.
int default_threads(int ranks);

}  // namespace h3
