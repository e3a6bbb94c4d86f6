// How everything is timed: all ranks begin together, work is waited for, one warm-up, then the repeats. A repeat takes
// as long as its slowest rank. Clock and power are those of rank 0's card.
#pragma once

#include <functional>
#include <string>

#include "bench/bench_table.h"
#include "bench/card_watch.h"
#include "render/session.h"

namespace h3 {

class Bench {
 public:
  Bench(Session& session, int repeats) : session_(session), repeats_(repeats), watch_(session.device_address()) {}
  Session& session() { return session_; }
  Machine& machine() { return session_.machine(); }
  Queue& queue() { return session_.queue(); }
  Communicator& communicator() { return session_.communicator(); }
  int repeats() const { return repeats_; }
  int ranks() { return session_.cluster().size(); }
  // bf16 or f32, as the session computes.
  DType dtype() const { return session_.precision() == Precision::f32 ? DType::f32 : DType::bf16; }

  // Collective. `work` gives its work to queues and may leave it running; `finish` waits for it (the session's queue
  // where none is given). The row has a name, times and the card's state.
  BenchRow time(const std::string& what, const std::function<void()>& work, const std::function<void()>& finish = {});
  // Collective. Several operators in turns, as often as there are repeats: each row's times are those of an operator
  // among the others. On a GPU the turns go round for some seconds first, until the card has settled at the clock that
  // its power limit allows under just this work; an operator on its own, with pauses, would run faster than that.
  struct Turn {
    std::string what;
    std::function<void()> work, finish;
  };
  std::vector<BenchRow> in_turns(const std::vector<Turn>& turns);
  // Seconds of single repeats after a warm-up, without another rank, in the order they ran; the card is watched.
  std::vector<double> alone(const std::function<void()>& work, Queue& q, CardState& card);

  // Sums and maxima over the ranks.
  double sum(double value);
  double largest(double value);

 private:
  void run(const std::function<void()>& work, const std::function<void()>& finish);

  Session& session_;
  int repeats_;
  CardWatch watch_;
};

// "1 rank", "2 ranks".
std::string ranks_text(int ranks);

// Where this session measures, for a table's head.
BenchPlace place_of(Session& session, const std::string& bench);

}  // namespace h3
