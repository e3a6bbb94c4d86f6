#include "bench/card_watch.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace h3 {

namespace {

// The four calls of NVML that are needed, by their published C interface. 0 is success; handles are opaque.
struct Nvml {
  using Device = void*;
  int (*init)() = nullptr;
  int (*device_by_address)(const char* address, Device* device) = nullptr;
  int (*clock)(Device device, int kind, unsigned* megahertz) = nullptr;
  int (*power)(Device device, unsigned* milliwatts) = nullptr;

  // True where the library is there and answers.
  bool open() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find(init, "nvmlInit_v2") && find(device_by_address, "nvmlDeviceGetHandleByPciBusId_v2") &&
           find(clock, "nvmlDeviceGetClockInfo") && find(power, "nvmlDeviceGetPowerUsage") && init() == 0;
  }
};

constexpr int kSmClock = 1;

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

struct CardWatch::Impl {
  Nvml nvml;
  Nvml::Device device = nullptr;
  std::atomic<bool> running{false};
  std::thread thread;
  std::vector<double> megahertz, watts;

  void sample() {
    while (running) {
      unsigned value = 0;
      if (nvml.clock(device, kSmClock, &value) == 0) megahertz.push_back(value);
      if (nvml.power(device, &value) == 0) watts.push_back(value / 1000.0);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
};

CardWatch::CardWatch(const std::string& address) {
  if (address.empty()) return;
  auto impl = std::make_unique<Impl>();
  if (impl->nvml.open() && impl->nvml.device_by_address(address.c_str(), &impl->device) == 0) impl_ = std::move(impl);
}

CardWatch::~CardWatch() {
  stop();
}

void CardWatch::start() {
  if (!impl_) return;
  stop();
  impl_->megahertz.clear();
  impl_->watts.clear();
  impl_->running = true;
  impl_->thread = std::thread([this] { impl_->sample(); });
}

CardState CardWatch::stop() {
  if (!impl_ || !impl_->thread.joinable()) return {};
  impl_->running = false;
  impl_->thread.join();
  return {median_of(impl_->megahertz), median_of(impl_->watts)};
}

}  // namespace h3
