#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace h3 {

namespace {

// One JSON object a line; the message is escaped by the JSON library.
class JsonFormatter final : public spdlog::formatter {
 public:
  explicit JsonFormatter(int rank) : rank_(rank) {}
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const auto since = std::chrono::duration<double>(msg.time.time_since_epoch()).count();
    const nlohmann::json line{{"time", since},
                              {"rank", rank_},
                              {"level", std::string(spdlog::level::to_string_view(msg.level).data())},
                              {"message", std::string(msg.payload.data(), msg.payload.size())}};
    const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(rank_); }

 private:
  int rank_;
};

}  // namespace

void start_log(const LogOptions& options, int rank) {
  const auto level = spdlog::level::from_str(options.level);
  if (level == spdlog::level::off && options.level != "off")
    throw UserError("--log-level", "", options.level, "one of trace, debug, info, warning, error, off");
  auto console = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  const auto visible = options.quiet || rank > 0 ? std::max(level, spdlog::level::warn) : level;
  console->set_level(visible);
  console->set_pattern(rank > 0 ? fmt::format("[%H:%M:%S] %^%l%$: rank {}: %v", rank) : "[%H:%M:%S] %^%l%$: %v");
  auto logger = std::make_shared<spdlog::logger>("h3render", console);
  if (!options.json_file.empty() && rank == 0) {
    try {
      auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.json_file, true);
      file->set_formatter(std::make_unique<JsonFormatter>(rank));
      logger->sinks().push_back(file);
    } catch (const spdlog::spdlog_ex& e) {
      throw UserError("--json-log", "", options.json_file, e.what());
    }
  }
  logger->set_level(level);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

}  // namespace h3
