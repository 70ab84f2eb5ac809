// The values of a template: Python's, as Jinja templates expect them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace braid::text::jinja {

class Callable;
class Dict;
class Namespace;
class Object;
class Runtime;
struct Sequence;

// What a failed look-up gives: prints as nothing, is false, and fails when it is used for more than that.
// `name` is what was looked up (owned by the program), or null when it was computed.
struct Undefined {
  const std::string* name = nullptr;
};

class Object {
 public:
  struct Missing {};  // an argument that was not given, a name that is not set; templates never see it
  struct None {};
  using Text = std::shared_ptr<const std::string>;  // UTF-8
  using Storage = std::variant<Missing, Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<Sequence>, std::shared_ptr<Dict>,
                               std::shared_ptr<Namespace>, std::shared_ptr<Callable>>;

  Object() = default;
  Object(Undefined value) : storage_(value) {}
  Object(None value) : storage_(value) {}
  Object(bool value) : storage_(value) {}
  Object(std::int64_t value) : storage_(value) {}
  Object(double value) : storage_(value) {}
  Object(Text value) : storage_(std::move(value)) {}
  Object(std::shared_ptr<Sequence> value) : storage_(std::move(value)) {}
  Object(std::shared_ptr<Dict> value) : storage_(std::move(value)) {}
  Object(std::shared_ptr<Namespace> value) : storage_(std::move(value)) {}
  Object(std::shared_ptr<Callable> value) : storage_(std::move(value)) {}
  static Object from_text(std::string value) { return {std::make_shared<const std::string>(std::move(value))}; }

  const Storage& storage() const { return storage_; }
  bool is_missing() const { return std::holds_alternative<Missing>(storage_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(storage_); }
  bool is_none() const { return std::holds_alternative<None>(storage_); }
  bool is_bool() const { return std::holds_alternative<bool>(storage_); }
  bool is_float() const { return std::holds_alternative<double>(storage_); }
  bool is_number() const { return is_bool() || is_float() || std::holds_alternative<std::int64_t>(storage_); }

  // Pointers into this object, or null when it is of another type.
  const std::string* text() const {
    const auto* value = std::get_if<Text>(&storage_);
    return value == nullptr ? nullptr : value->get();
  }
  Sequence* sequence() const { return pointee<Sequence>(); }
  Dict* dict() const { return pointee<Dict>(); }
  Namespace* name_space() const { return pointee<Namespace>(); }
  Callable* callable() const { return pointee<Callable>(); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&storage_); }

  // Python's int: an integer or a bool. `value` is left alone when it is neither.
  bool to_integer(std::int64_t& value) const;
  // The value of any number as a float; 0 for what is none.
  double to_double() const;

  bool truth() const;

 private:
  template <class T>
  T* pointee() const {
    const auto* value = std::get_if<std::shared_ptr<T>>(&storage_);
    return value == nullptr ? nullptr : value->get();
  }
  Storage storage_;
};

// Everything ordered. A generator yields its items once; keys, values and items are what the methods of dicts of these names return.
struct Sequence {
  enum class Kind : std::uint8_t { kList, kTuple, kRange, kKeys, kValues, kItems, kGenerator };
  Kind kind = Kind::kList;
  int depth = 1;  // how deep lists and dicts nest in it
  std::vector<Object> items;
  bool is_group = false;  // a tuple of groupby: its items are also called grouper and list
};

// Keeps the order of insertion, as Python does. Its keys pass is_key().
class Dict {
 public:
  using Item = std::pair<Object, Object>;
  const std::vector<Item>& items() const { return items_; }
  const Object* find(const Object& key) const;
  const Object* find(std::string_view key) const;
  void set(Object key, Object value);

  int depth = 1;  // as in Sequence

 private:
  std::vector<Item> items_;
  std::unordered_multimap<std::size_t, std::size_t> index_;  // hash of the key to its place; empty while the dict is small
};

// What namespace() returns: the only value whose members a template may assign.
class Namespace {
 public:
  Dict members;
};

// A macro, a method, a function, the loop variable.
class Callable : public std::enable_shared_from_this<Callable> {
 public:
  virtual ~Callable() = default;
  struct Call;
  virtual Object call(Runtime& runtime, Call& arguments) = 0;
  // The attribute, or missing.
  virtual Object attribute(Runtime& runtime, std::string_view name);
  virtual std::string describe() const = 0;
  virtual int depth() const { return 0; }  // of the values it holds, as in Sequence
};

// Positional and keyword arguments as written.
struct Callable::Call {
  std::vector<Object> positional;
  std::vector<std::pair<std::string, Object>> named;
};

// Lists and dicts nest at most so deep when they are made; a list that a template changes afterwards may go deeper, so
// every recursion over values bounds itself, at twice this.
inline constexpr int kMaxValueDepth = 200;

// Python's == and <, at the cost of one of `steps` per value looked at. Out of steps nothing is equal.
class Comparison {
 public:
  explicit Comparison(std::size_t& steps) : steps_(steps) {}
  bool equal(const Object& left, const Object& right);
  // -1, 0, 1, or 2 when Python cannot order the two.
  int order(const Object& left, const Object& right);

 private:
  bool equal_sequences(const Sequence& left, const Sequence& right);
  bool equal_dicts(const Dict& left, const Dict& right);
  std::size_t& steps_;
  int level_ = 0;
};

// Whether it can be the key of a dict: text, a number, none. (Python takes tuples as well.)
bool is_key(const Object& value);
int depth_of(const Object& value);
// Python's name of the type, for messages.
std::string_view type_name(const Object& value);

}  // namespace braid::text::jinja
