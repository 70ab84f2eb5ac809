#include "net/admin/registry_list.h"

#include "braid/model_registry.h"
#include "net/http/error_response.h"
#include "net/http/query.h"
#include "net/json/write.h"
#include "net/service/document_stream.h"
#include "net/service/registry_jobs.h"

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::admin {
namespace {

namespace asio = boost::asio;

ModelFilter filter_of(std::string_view target) {
  const std::size_t mark = target.find('?');
  const std::string_view query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  const auto value = [query](std::string_view name) { return http::query_value(query, name).value_or(""); };
  return {value("name"), value("architecture"), value("quantisation"), value("capability"), value("source"), value("format")};
}

std::string list_of(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(json::quoted(word));
  return fmt::format("[{}]", fmt::join(quoted, ","));
}

std::string document_of(const std::vector<StoredModel>& models) {
  std::map<std::string, std::vector<std::string>> names;  // by digest
  for (const StoredModel& model : models) names[model.digest].push_back(model.name);
  std::string out = R"({"object":"list","data":[)";
  for (const StoredModel& model : models) {
    std::vector<std::string> aliases = names[model.digest];
    std::erase(aliases, model.name);
    const ModelFacts& facts = model.facts;
    if (!out.ends_with('[')) out += ',';
    fmt::format_to(std::back_inserter(out),
                   R"({{"id":{},"object":"registry.model","digest":"{}","bytes":{},"modified":{},"last_used":{},"source":{},"parent":{},)"
                   R"("aliases":{},"format":{},"architecture":{},"parameters":{},"quantisation":{},"context_length":{},)"
                   R"("embedding_length":{},"has_template":{},"capabilities":{}}})",
                   json::quoted(model.name), model.digest, model.bytes, model.modified, model.last_used, json::quoted(model.source),
                   json::quoted(model.parent), list_of(aliases), json::quoted(facts.format), json::quoted(facts.architecture),
                   facts.parameters, json::quoted(facts.quantisation), facts.context, facts.embedding, facts.has_template,
                   list_of(facts.able));
  }
  return out + "]}";
}

}  // namespace

asio::awaitable<bool> list_registry(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                    RequestRecord& record) {
  std::function<Result<std::vector<StoredModel>>(ModelRegistry&)> list = [filter = filter_of(request.target)](ModelRegistry& registry) {
    return registry.list(filter);
  };
  const Result<std::vector<StoredModel>> models = co_await ask_registry(*service, std::move(list));
  http::Response response;
  if (models)
    response.body = document_of(*models);
  else
    response = http::error_response(models.error());
  DocumentStream stream(*service, *connection, request, record, nullptr);
  co_return co_await stream.answer(response);
}

}  // namespace braid::net::admin
