#include "registry/database.h"

#include <fmt/format.h>
#include <new>
#include <sqlite3.h>
#include <utility>

namespace braid::registry {
namespace {

constexpr int kWaitMs = 10'000;

Error failure_of(sqlite3* database) {
  const int code = sqlite3_errcode(database);
  const char* file = sqlite3_db_filename(database, "main");
  const std::string name = file != nullptr ? file : "the registry's database";
  if (code == SQLITE_FULL)
    return {ErrorCode::kIo, fmt::format("cannot write {}: the disk is full; make room, or name another folder with --data-dir", name), ""};
  const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return {damaged ? ErrorCode::kBadFile : ErrorCode::kIo, fmt::format("{}: {}", name, sqlite3_errmsg(database)), ""};
}

}  // namespace

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(std::string_view text) {
  sqlite3_bind_text64(statement_, next_++, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(std::int64_t number) {
  sqlite3_bind_int64(statement_, next_++, number);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return failure_of(database_);
}

Result<void> Statement::run() {
  for (;;) {
    const Result<bool> row = step();
    if (!row) return row.error();
    if (!*row) return {};
  }
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return bytes != nullptr ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))) : std::string();
}

std::int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_, column); }

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Result<Database> Database::open(const std::string& path, std::int64_t version) {
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database database(handle);
  if (handle == nullptr) throw std::bad_alloc();
  if (opened != SQLITE_OK) return failure_of(handle);
  sqlite3_busy_timeout(handle, kWaitMs);
  if (const Result<void> checked = database.check(); !checked) return checked.error();
  if (database.version_ > version)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("{} was written by a newer version of braid (schema {}, this one knows {}): use that one, or another --data-dir", path,
                    database.version_, version),
        ""};
  const Result<void> set = database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
  if (!set) return set.error();
  return database;
}

Result<void> Database::check() {
  // A file is read, and so recognised, by the first of these.
  Result<Statement> asked = prepare("PRAGMA user_version");
  if (!asked) return asked.error();
  const Result<bool> row = asked->step();
  if (!row) return row.error();
  version_ = *row ? asked->number(0) : 0;
  Result<Statement> sound = prepare("PRAGMA quick_check(1)");
  if (!sound) return sound.error();
  const Result<bool> said = sound->step();
  if (!said) return said.error();
  if (sound->text(0) != "ok") return Error{ErrorCode::kBadFile, fmt::format("the registry's database is damaged: {}", sound->text(0)), ""};
  return {};
}

Result<void> Database::set_version(std::int64_t version) {
  const Result<void> set = execute(fmt::format("PRAGMA user_version = {}", version));
  if (set) version_ = version;
  return set;
}

Result<void> Database::execute(const std::string& statements) {
  if (sqlite3_exec(database_.get(), statements.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return failure_of(database_.get());
}

Result<Statement> Database::prepare(std::string_view statement) {
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(database_.get(), statement.data(), static_cast<int>(statement.size()), &prepared, nullptr) != SQLITE_OK)
    return failure_of(database_.get());
  return Statement(database_.get(), prepared);
}

Result<Transaction> Transaction::begin(Database& database) {
  if (const Result<void> begun = database.execute("BEGIN IMMEDIATE"); !begun) return begun.error();
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_ != nullptr) static_cast<void>(database_->execute("ROLLBACK"));
}

Result<void> Transaction::commit() {
  const Result<void> committed = database_->execute("COMMIT");
  if (committed) database_ = nullptr;
  return committed;
}

}  // namespace braid::registry
