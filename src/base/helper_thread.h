// Threads beside the main one: checkpoint writing, heartbeats, watching. They take no signals, so that a signal always
// finds the main thread and never interrupts a write.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace h3 {

// Starts `f` on a thread that has every signal blocked.
template <typename F>
std::thread start_helper_thread(F&& f) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread inherits the mask of the one that starts it
  try {
    std::thread thread(std::forward<F>(f));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace h3
