// The machine one rank computes on: its memory, its queues and its operators. CpuMachine is the oracle and runs at
// once; CudaMachine is one GPU. Buffers own memory, an arena carves one buffer into the tensors of a stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "compute/tensor.h"

namespace h3 {

class Operators;

// An ordered stream of work. On the CPU work runs at once and the calls below do nothing.
class Queue {
 public:
  virtual ~Queue() = default;
  // Blocks the host until everything given to the queue is done; throws RunError when any of it failed.
  virtual void wait() = 0;
  // Marks the work given so far, and makes later work of this queue wait for another queue's mark.
  virtual void wait_for(Queue& other) = 0;
  // Seconds between two marks; 0 on the CPU. See Machine::now for host times.
};

class Machine;

// Owned memory of a machine, or page-locked host memory; freed with the object.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Machine& machine, std::size_t bytes, Place place);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Place place() const { return place_; }
  Tensor tensor(Shape shape, DType dtype) const { return Tensor(data_, shape, dtype, place_); }

 private:
  Machine* machine_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Place place_ = Place::host;
};

class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string name() const = 0;              // "NVIDIA H200", "AMD EPYC ..."
  virtual std::string backend() const = 0;           // "cpu" or "cuda"
  virtual std::string capability() const = 0;        // "9.0", or the CPU's vector level; part of the numerics id
  virtual std::string library_versions() const = 0;  // drivers and libraries in words
  virtual Place place() const = 0;                   // where operators want their tensors
  virtual std::size_t free_memory() const = 0;       // bytes, at place()
  virtual std::size_t total_memory() const = 0;
  virtual std::unique_ptr<Queue> make_queue() = 0;
  virtual Operators& operators() = 0;
  virtual void* allocate(std::size_t bytes, Place place) = 0;  // 256-byte aligned; host memory is page-locked on CUDA
  virtual void release(void* data, Place place) = 0;
  // Copies a contiguous tensor to another of equal dtype and element count, between any two places, in queue order.
  // Host memory must stay valid until the queue has passed.
  virtual void copy(Queue& queue, const Tensor& from, const Tensor& to) = 0;
};

// Carves one buffer into tensors, 256-byte aligned. `mark` and `rewind` free in stack order. A planner without a
// buffer adds the same numbers up: construct with no machine, take tensors (null data), read `peak`.
class Arena {
 public:
  Arena() = default;
  Arena(Machine& machine, std::size_t bytes) : buffer_(machine, bytes, machine.place()), capacity_(bytes) {}
  Tensor take(Shape shape, DType dtype);
  std::size_t mark() const { return used_; }
  void rewind(std::size_t mark) { used_ = mark; }
  std::size_t peak() const { return peak_; }
  std::size_t capacity() const { return capacity_; }

 private:
  Buffer buffer_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

std::unique_ptr<Machine> make_cpu_machine();

}  // namespace h3
