#include "app/bench/server_figures.h"

#include "app/bench/response_reader.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <fmt/format.h>

namespace braid::bench {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

// The value of a family without labels.
std::optional<double> figure_named(std::string_view metrics, std::string_view name) {
  for (std::size_t at = 0; at < metrics.size();) {
    const std::size_t end = std::min(metrics.find('\n', at), metrics.size());
    const std::string_view line = metrics.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    double value = 0;
    const std::string_view number = line.substr(name.size() + 1);
    if (std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc()) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ServerFigures> parse_figures(std::string_view metrics) {
  const auto user = figure_named(metrics, "process_cpu_user_seconds_total");
  const auto system = figure_named(metrics, "process_cpu_system_seconds_total");
  const auto together = user && system ? std::optional(*user + *system) : figure_named(metrics, "process_cpu_seconds_total");
  const auto memory = figure_named(metrics, "process_resident_memory_bytes");
  if (!together || !memory) return std::nullopt;
  return ServerFigures{*together, *memory};
}

std::optional<ServerFigures> read_figures(const std::vector<tcp::endpoint>& endpoints, const Target& target, const std::string& api_key) {
  asio::io_context io;
  tcp::socket socket(io);
  boost::system::error_code error;
  asio::connect(socket, endpoints, error);
  if (error) return std::nullopt;
  std::string request = fmt::format("GET /metrics HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n", target.host, target.port);
  if (!api_key.empty()) request += fmt::format("Authorization: Bearer {}\r\n", api_key);
  asio::write(socket, asio::buffer(request + "\r\n"), error);
  ResponseReader reader;
  std::array<char, 16384> buffer;
  while (!error && (reader.state() == ResponseReader::State::kHead || reader.state() == ResponseReader::State::kBody)) {
    const std::size_t count = socket.read_some(asio::buffer(buffer), error);
    reader.feed({buffer.data(), count});
  }
  if (error == asio::error::eof) reader.close();
  if (reader.state() != ResponseReader::State::kDone || reader.status() != 200) return std::nullopt;
  return parse_figures(reader.body());
}

}  // namespace braid::bench
