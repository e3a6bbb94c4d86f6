#include "render/denoise.h"

#include <algorithm>
#include <chrono>

#include "render/memory_use.h"

namespace h3 {

namespace {

// One stream's latents: the whole on the host, this rank's rows where operators work.
class StreamRows {
 public:
  StreamRows(Machine& machine, Queue& q, Communicator& communicator, std::vector<Range> owned, std::int64_t width,
             const std::vector<float>& initial)
      : machine_(machine), communicator_(communicator), owned_(std::move(owned)), width_(width), whole_(initial) {
    const std::int64_t rows = mine().size();
    buffer_ = Buffer(machine, static_cast<std::size_t>(std::max<std::int64_t>(rows * width, 1)) * 2 * sizeof(float),
                     machine.place());
    const Tensor both = buffer_.tensor({2, rows, width}, DType::f32);
    x = both.at(0);
    velocity = both.at(1);
    if (rows > 0) machine.copy(q, host_rows(mine()), x);
  }

  // Rows of which each rank holds its own, whole on every rank; nothing for a null tensor.
  std::vector<float> gather(Queue& q, const Tensor& own) {
    if (!own) return {};
    if (own.elements() > 0) machine_.copy(q, own, host_rows(mine()));
    q.wait();
    std::vector<Tensor> blocks;
    for (const Range& rows : owned_) blocks.push_back(host_rows(rows));
    communicator_.all_gather(q, blocks);
    q.wait();
    return whole_;
  }
  // This rank's rows of `whole`.
  void scatter(Queue& q, const std::vector<float>& whole, const Tensor& own) {
    whole_ = whole;
    if (own.elements() > 0) machine_.copy(q, host_rows(mine()), own);
    q.wait();
  }

  Tensor x, velocity;  // [own rows, width]

 private:
  Range mine() const { return owned_[static_cast<std::size_t>(communicator_.rank())]; }
  Tensor host_rows(Range rows) {
    return Tensor(whole_.data() + rows.begin * width_, {rows.size(), width_}, DType::f32);
  }

  Machine& machine_;
  Communicator& communicator_;
  std::vector<Range> owned_;
  std::int64_t width_;
  std::vector<float> whole_;
  Buffer buffer_;
};

std::vector<Range> owned_rows(const Clip& clip, const ShardPlan& plan, SegmentKind kind) {
  std::vector<Range> owned;
  for (const Range& rows : plan.rows) owned.push_back(target_rows(clip, rows, kind));
  return owned;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// x + sigma v with the sigma that the step went to (spec/dit.md 5.3).
std::vector<float> clean_estimate(std::vector<float> x, const std::vector<float>& velocity, const StepCoefficients& c) {
  const float sigma = c.one_minus_t * c.ratio;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += sigma * velocity[i];
  return x;
}

double most_of(Communicator& communicator, std::size_t bytes) {
  const std::vector<double> all = communicator.gather_value(static_cast<double>(bytes));
  return *std::max_element(all.begin(), all.end());
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double v : values) total += v;
  return total;
}

}  // namespace

LatentState denoise(Machine& machine, Queue& q, Communicator& communicator, Transformer& transformer, const Clip& clip,
                    const ShardPlan& plan, const TransformerConfig& config, const SamplerPlan& sampler_plan,
                    const LatentState& initial, const DenoiseCalls& calls) {
  StreamRows video(machine, q, communicator, owned_rows(clip, plan, SegmentKind::target_video), config.video_row(),
                   initial.video);
  StreamRows audio(machine, q, communicator, owned_rows(clip, plan, SegmentKind::target_audio), config.audio_channels,
                   initial.audio);
  // res_multistep keeps two clean estimates of each stream.
  Arena history(machine, 2 * (video.x.bytes() + audio.x.bytes()) + 4096);
  Sampler sampler(sampler_plan, history, video.x.shape, audio.x.shape);
  if (initial.step > 0) {
    if (sampler.previous_video()) {
      video.scatter(q, initial.previous_video, sampler.previous_video());
      audio.scatter(q, initial.previous_audio, sampler.previous_audio());
    }
    sampler.resume(static_cast<int>(initial.step));
  }
  const auto gathered = [&](std::int64_t step) {
    return LatentState{video.gather(q, video.x), audio.gather(q, audio.x), step,
                       video.gather(q, sampler.previous_video()), audio.gather(q, sampler.previous_audio())};
  };

  for (std::int64_t step = initial.step; step < sampler_plan.steps(); ++step) {
    if (calls.before_step) calls.before_step(step);
    const auto start = std::chrono::steady_clock::now();
    const double exchange_before = transformer.exchange_seconds();
    const auto bytes_before = communicator.bytes_received();
    transformer.forward(q, step, video.x, audio.x, video.velocity, audio.velocity);
    sampler.step(machine.operators(), q, video.x, video.velocity, audio.x, audio.velocity);
    q.wait();
    if (calls.step) {
      const auto seconds = communicator.gather_value(seconds_since(start));
      const auto exchange = communicator.gather_value(transformer.exchange_seconds() - exchange_before);
      const auto bytes = communicator.gather_value(static_cast<double>(communicator.bytes_received() - bytes_before));
      const auto [least, most] = std::minmax_element(exchange.begin(), exchange.end());
      calls.step({step + 1, sampler_plan.steps(), *std::max_element(seconds.begin(), seconds.end()), *least, *most,
                  sum(bytes), most_of(communicator, peak_resident_memory()),
                  most_of(communicator, device_memory_in_use(machine))});
    }
    if (calls.wants_estimate && calls.wants_estimate(step + 1)) {
      const StepCoefficients& c = sampler_plan.video[static_cast<std::size_t>(step)];
      calls.estimate(clean_estimate(video.gather(q, video.x), video.gather(q, video.velocity), c));
    }
    if (calls.wants_latents && calls.wants_latents(step + 1)) calls.latents(gathered(step + 1));
  }
  return gathered(sampler_plan.steps());
}

}  // namespace h3
