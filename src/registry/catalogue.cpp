#include "registry/catalogue.h"

#include <ctime>
#include <filesystem>
#include <fmt/format.h>

namespace braid::registry {
namespace {

constexpr std::int64_t kSchema = 1;

constexpr const char* kTables = R"(
CREATE TABLE weights(
  identity TEXT PRIMARY KEY, format TEXT NOT NULL, architecture TEXT NOT NULL, parameters INTEGER NOT NULL, quantisation TEXT NOT NULL,
  context INTEGER NOT NULL, embedding INTEGER NOT NULL, bytes INTEGER NOT NULL, licence TEXT NOT NULL, template TEXT NOT NULL,
  able TEXT NOT NULL) STRICT;
CREATE TABLE models(
  name TEXT PRIMARY KEY, digest TEXT NOT NULL, bytes INTEGER NOT NULL, modified INTEGER NOT NULL, source TEXT NOT NULL, origin TEXT NOT NULL,
  parent TEXT NOT NULL, path TEXT NOT NULL, identity TEXT NOT NULL, format TEXT NOT NULL, architecture TEXT NOT NULL,
  parameters INTEGER NOT NULL, quantisation TEXT NOT NULL, context INTEGER NOT NULL, embedding INTEGER NOT NULL,
  has_template INTEGER NOT NULL) STRICT;
CREATE TABLE abilities(
  model TEXT NOT NULL REFERENCES models(name) ON DELETE CASCADE, position INTEGER NOT NULL, ability TEXT NOT NULL,
  PRIMARY KEY(model, position)) STRICT;
CREATE TABLE files(
  model TEXT NOT NULL REFERENCES models(name) ON DELETE CASCADE, position INTEGER NOT NULL, kind TEXT NOT NULL, digest TEXT NOT NULL,
  path TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY(model, position)) STRICT;
CREATE TABLE uses(model TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT;
CREATE INDEX models_by_origin ON models(origin);
)";

constexpr std::string_view kModelColumns =
    "name, digest, bytes, modified, source, parent, path, format, architecture, parameters, quantisation, context, embedding, "
    "has_template, "
    "coalesce(last, 0), identity, origin";

StoredModel read_model(const Statement& row) {
  StoredModel model;
  model.name = row.text(0);
  model.digest = row.text(1);
  model.bytes = static_cast<std::uint64_t>(row.number(2));
  model.modified = row.number(3);
  model.source = row.text(4);
  model.parent = row.text(5);
  model.path = row.text(6);
  model.facts.format = row.text(7);
  model.facts.architecture = row.text(8);
  model.facts.parameters = row.number(9);
  model.facts.quantisation = row.text(10);
  model.facts.context = row.number(11);
  model.facts.embedding = row.number(12);
  model.facts.has_template = row.number(13) != 0;
  model.last_used = row.number(14);
  return model;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t end = 0; !text.empty(); text.remove_prefix(std::min(text.size(), end + 1))) {
    end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Beside the file, for whoever wants to look at it; what was in it is read from the models again.
std::string put_aside(const std::string& path) {
  const std::string aside = fmt::format("{}.damaged-{}", path, std::time(nullptr));
  std::error_code ignored;
  std::filesystem::rename(path, aside, ignored);
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path + suffix, ignored);
  return aside;
}

}  // namespace

Result<Catalogue> Catalogue::open(const std::string& path, std::string& note) {
  Result<Database> database = Database::open(path, kSchema);
  if (!database && database.error().code == ErrorCode::kBadFile) {
    note = fmt::format("{}; it is now {}, and a new one is made from the models", database.error().message, put_aside(path));
    database = Database::open(path, kSchema);
  }
  if (!database) return database.error();
  Catalogue catalogue(std::move(*database));
  if (catalogue.database_.version() == 0)
    if (const Result<void> made = catalogue.make_tables(); !made) return made.error();
  return catalogue;
}

Result<void> Catalogue::make_tables() {
  Result<Transaction> transaction = Transaction::begin(database_);
  if (!transaction) return transaction.error();
  if (const Result<void> made = database_.execute(kTables); !made) return made;
  if (const Result<void> set = database_.set_version(kSchema); !set) return set;
  return transaction->commit();
}

Result<std::vector<StoredModel>> Catalogue::list(const ModelFilter& filter) {
  std::string query = fmt::format("SELECT {} FROM models LEFT JOIN uses ON uses.model = name WHERE 1", kModelColumns);
  std::vector<std::string_view> values;
  const auto want = [&](std::string_view value, std::string_view condition) {
    if (value.empty()) return;
    query += fmt::format(" AND {}", condition);
    values.push_back(value);
  };
  want(filter.name, "instr(lower(name), lower(?)) > 0");
  want(filter.architecture, "lower(architecture) = lower(?)");
  want(filter.quantisation, "lower(quantisation) = lower(?)");
  want(filter.source, "source = ?");
  want(filter.format, "format = ?");
  want(filter.capability, "EXISTS (SELECT 1 FROM abilities WHERE abilities.model = name AND ability = ?)");
  Result<Statement> rows = database_.prepare(query + " ORDER BY modified DESC, name");
  if (!rows) return rows.error();
  for (const std::string_view value : values) rows->bind(value);
  std::vector<StoredModel> models;
  for (;;) {
    const Result<bool> row = rows->step();
    if (!row) return row.error();
    if (!*row) return models;
    models.push_back(read_model(*rows));
    Result<std::vector<std::string>> able = abilities(models.back().name);
    if (!able) return able.error();
    models.back().facts.able = std::move(*able);
  }
}

Result<std::vector<std::string>> Catalogue::abilities(std::string_view name) {
  Result<Statement> rows = database_.prepare("SELECT ability FROM abilities WHERE model = ? ORDER BY position");
  if (!rows) return rows.error();
  rows->bind(name);
  std::vector<std::string> words;
  for (;;) {
    const Result<bool> row = rows->step();
    if (!row) return row.error();
    if (!*row) return words;
    words.push_back(rows->text(0));
  }
}

Result<std::optional<CatalogueEntry>> Catalogue::find(std::string_view name) {
  Result<Statement> row =
      database_.prepare(fmt::format("SELECT {} FROM models LEFT JOIN uses ON uses.model = name WHERE name = ?", kModelColumns));
  if (!row) return row.error();
  row->bind(name);
  const Result<bool> found = row->step();
  if (!found) return found.error();
  if (!*found) return std::optional<CatalogueEntry>();
  CatalogueEntry entry{read_model(*row), row->text(15), row->text(16), {}};
  Result<std::vector<std::string>> able = abilities(name);
  if (!able) return able.error();
  entry.model.facts.able = std::move(*able);
  Result<Statement> files = database_.prepare("SELECT kind, digest, path, bytes FROM files WHERE model = ? ORDER BY position");
  if (!files) return files.error();
  files->bind(name);
  for (;;) {
    const Result<bool> more = files->step();
    if (!more) return more.error();
    if (!*more) return std::optional(std::move(entry));
    entry.files.push_back({files->text(0), files->text(1), files->text(2), static_cast<std::uint64_t>(files->number(3))});
  }
}

Result<std::map<std::string, std::string>> Catalogue::digests_from(std::string_view origin) {
  Result<Statement> rows = database_.prepare("SELECT name, digest FROM models WHERE origin = ?");
  if (!rows) return rows.error();
  rows->bind(origin);
  std::map<std::string, std::string> digests;
  for (;;) {
    const Result<bool> row = rows->step();
    if (!row) return row.error();
    if (!*row) return digests;
    digests.emplace(rows->text(0), rows->text(1));
  }
}

Result<std::vector<std::string>> Catalogue::origins() {
  Result<Statement> rows = database_.prepare("SELECT DISTINCT origin FROM models WHERE origin <> ''");
  if (!rows) return rows.error();
  std::vector<std::string> folders;
  for (;;) {
    const Result<bool> row = rows->step();
    if (!row) return row.error();
    if (!*row) return folders;
    folders.push_back(rows->text(0));
  }
}

Result<void> Catalogue::put(const CatalogueEntry& entry) {
  Result<Transaction> transaction = Transaction::begin(database_);
  if (!transaction) return transaction.error();
  const StoredModel& model = entry.model;
  Result<Statement> erased = database_.prepare("DELETE FROM models WHERE name = ?");
  if (!erased) return erased.error();
  if (const Result<void> done = erased->bind(model.name).run(); !done) return done;
  Result<Statement> row = database_.prepare("INSERT INTO models VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  if (!row) return row.error();
  row->bind(model.name).bind(model.digest).bind(static_cast<std::int64_t>(model.bytes)).bind(model.modified).bind(model.source);
  row->bind(entry.origin).bind(model.parent).bind(model.path).bind(entry.identity).bind(model.facts.format);
  row->bind(model.facts.architecture).bind(model.facts.parameters).bind(model.facts.quantisation).bind(model.facts.context);
  row->bind(model.facts.embedding).bind(std::int64_t{model.facts.has_template});
  if (const Result<void> done = row->run(); !done) return done;
  if (const Result<void> done = put_parts(entry); !done) return done;
  return transaction->commit();
}

Result<void> Catalogue::put_parts(const CatalogueEntry& entry) {
  std::int64_t position = 0;
  for (const std::string& ability : entry.model.facts.able) {
    Result<Statement> row = database_.prepare("INSERT INTO abilities VALUES(?, ?, ?)");
    if (!row) return row.error();
    if (const Result<void> done = row->bind(entry.model.name).bind(position++).bind(ability).run(); !done) return done;
  }
  position = 0;
  for (const CatalogueFile& file : entry.files) {
    Result<Statement> row = database_.prepare("INSERT INTO files VALUES(?, ?, ?, ?, ?, ?)");
    if (!row) return row.error();
    row->bind(entry.model.name).bind(position++).bind(file.kind).bind(file.digest).bind(file.path);
    if (const Result<void> done = row->bind(static_cast<std::int64_t>(file.bytes)).run(); !done) return done;
  }
  return {};
}

Result<void> Catalogue::erase(std::string_view name) {
  Result<Statement> row = database_.prepare("DELETE FROM models WHERE name = ?");
  if (!row) return row.error();
  return row->bind(name).run();
}

Result<std::optional<WeightsFacts>> Catalogue::facts(std::string_view identity) {
  Result<Statement> row = database_.prepare(
      "SELECT format, architecture, parameters, quantisation, context, embedding, bytes, licence, template, able FROM weights "
      "WHERE identity = ?");
  if (!row) return row.error();
  row->bind(identity);
  const Result<bool> found = row->step();
  if (!found) return found.error();
  if (!*found) return std::optional<WeightsFacts>();
  WeightsFacts read;
  read.facts.format = row->text(0);
  read.facts.architecture = row->text(1);
  read.facts.parameters = row->number(2);
  read.facts.quantisation = row->text(3);
  read.facts.context = row->number(4);
  read.facts.embedding = row->number(5);
  read.bytes = static_cast<std::uint64_t>(row->number(6));
  read.licence = row->text(7);
  read.chat_template = row->text(8);
  read.facts.has_template = !read.chat_template.empty();
  read.facts.able = words_of(row->text(9));
  return std::optional(std::move(read));
}

Result<void> Catalogue::put_facts(std::string_view identity, const WeightsFacts& read) {
  Result<Statement> row = database_.prepare("INSERT OR REPLACE INTO weights VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  if (!row) return row.error();
  const ModelFacts& facts = read.facts;
  row->bind(identity).bind(facts.format).bind(facts.architecture).bind(facts.parameters).bind(facts.quantisation).bind(facts.context);
  row->bind(facts.embedding).bind(static_cast<std::int64_t>(read.bytes)).bind(read.licence).bind(read.chat_template);
  return row->bind(joined(facts.able)).run();
}

Result<void> Catalogue::note_use(std::string_view name, std::int64_t unix_seconds) {
  Result<Statement> row = database_.prepare("INSERT OR REPLACE INTO uses VALUES(?, ?)");
  if (!row) return row.error();
  return row->bind(name).bind(unix_seconds).run();
}

}  // namespace braid::registry
