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
  JsonFormatter(int rank, std::string group) : rank_(rank), group_(std::move(group)) {}
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const auto since = std::chrono::duration<double>(msg.time.time_since_epoch()).count();
    nlohmann::json line{{"time", since},
                        {"rank", rank_},
                        {"level", std::string(spdlog::level::to_string_view(msg.level).data())},
                        {"message", std::string(msg.payload.data(), msg.payload.size())}};
    if (!group_.empty()) line["group"] = group_;
    const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(rank_, group_); }

 private:
  int rank_;
  std::string group_;
};

// What start_log was given, for log_for_group.
LogOptions started;
int started_rank = 0;

void make_log(const std::string& group, bool speaks) {
  const auto level = spdlog::level::from_str(started.level);
  auto console = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  console->set_level(started.quiet || !speaks ? std::max(level, spdlog::level::warn) : level);
  std::string who = group;
  if (!speaks) who += fmt::format("{}rank {}", group.empty() ? "" : ", ", started_rank);
  console->set_pattern("[%H:%M:%S] %^%l%$: " + who + (who.empty() ? "%v" : ": %v"));
  auto logger = std::make_shared<spdlog::logger>("h3render", console);
  if (!started.json_file.empty() && speaks) {
    // The first rank begins the file anew; others only ever come later.
    const bool anew = group.empty() && started_rank == 0;
    auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(started.json_file, anew);
    file->set_formatter(std::make_unique<JsonFormatter>(started_rank, group));
    logger->sinks().push_back(file);
  }
  logger->set_level(level);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

}  // namespace

void start_log(const LogOptions& options, int rank) {
  if (spdlog::level::from_str(options.level) == spdlog::level::off && options.level != "off")
    throw UserError("--log-level", "", options.level, "one of trace, debug, info, warning, error, off");
  started = options;
  started_rank = rank;
  try {
    make_log("", rank == 0);
  } catch (const spdlog::spdlog_ex& e) {
    throw UserError("--json-log", "", options.json_file, e.what());
  }
}

void log_for_group(const std::string& group, bool speaks) {
  make_log(group, speaks);
}

}  // namespace h3
