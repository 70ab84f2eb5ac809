// SQLite, as far as it is used here.
#pragma once

#include "braid/result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

struct sqlite3;
struct sqlite3_stmt;

namespace braid::registry {

// One prepared statement, for one thread at a time.
class Statement {
 public:
  Statement(sqlite3* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  Statement(Statement&& other) noexcept : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  // The parameters in their order.
  Statement& bind(std::string_view text);
  Statement& bind(std::int64_t number);

  Result<bool> step();  // whether there is a row
  Result<void> run();   // to its end
  std::string text(int column) const;
  std::int64_t number(int column) const;

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_;
  int next_ = 1;
};

// A connection to one file, in write-ahead mode: readers and a writer of several processes do not wait for each other, writers wait for
// at most ten seconds. One thread at a time.
class Database {
 public:
  // kBadFile: it is none, or damaged; kUnsupported: `version` is older than what a newer program has made of it. A new one has version 0
  // until set_version().
  static Result<Database> open(const std::string& path, std::int64_t version);

  std::int64_t version() const { return version_; }
  Result<void> set_version(std::int64_t version);

  Result<void> execute(const std::string& statements);
  Result<Statement> prepare(std::string_view statement);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}
  Result<void> check();

  std::unique_ptr<sqlite3, Close> database_;
  std::int64_t version_ = 0;
};

// What is done until commit() happens all at once, or, without it, not at all.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace braid::registry
