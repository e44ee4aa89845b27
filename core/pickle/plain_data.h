// Data of lists, maps, texts and numbers, as pickles and JSON hold it.

#ifndef OTT_CORE_PICKLE_PLAIN_DATA_H_
#define OTT_CORE_PICKLE_PLAIN_DATA_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ott {

// Values that refer to each other by index, so that one may be in several places, as pickles have it; even in
// itself. Reading a value goes as deep as the caller asks, never further.
class PlainData {
 public:
  using Index = uint32_t;
  // The last four are in pickles alone.
  enum class Type : uint8_t {
    kNone,
    kBool,
    kInteger,
    kReal,
    kText,
    kList,
    kMap,
    kBytes,
    kGlobal,      // a class or function, by name
    kObject,      // what calling a class or function would have made
    kPersistent,  // what the pickle's reader is to put there, such as a storage
  };
  static constexpr Index kNoValue = ~Index{0};
  // The items of a kObject, in this order, kNoValue where it has none.
  enum ObjectItem : uint8_t { kArguments, kState, kEntries, kElements, kNumObjectItems };

  struct Value {
    Type type = Type::kNone;
    int64_t integer = 0;  // of kBool and kInteger
    double real = 0;      // of kReal
    // kText: valid UTF-8; kBytes: the bytes; kGlobal and kObject: the name, "collections.OrderedDict". The
    // bytes outlive this object.
    std::string_view text;
    // Items of kList; of kMap keys and values in turn; of kObject its ObjectItems; of kPersistent its name.
    std::vector<Index> items;
  };

  Index Add(Type type) {
    values_.emplace_back();
    values_.back().type = type;
    return static_cast<Index>(values_.size()) - 1;
  }
  // Keeps a text that the source does not hold as it is.
  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  Value& operator[](Index index) { return values_[index]; }
  const Value& operator[](Index index) const { return values_[index]; }
  size_t size() const { return values_.size(); }

  // Returns the value of a key of a map; null if it is no map or has no such key.
  const Value* Find(const Value& map, std::string_view key) const;
  const Value* Find(const Value* map, std::string_view key) const {
    return map == nullptr ? nullptr : Find(*map, key);
  }

 private:
  std::vector<Value> values_;
  std::deque<std::string> texts_;
};

// Returns the integer of a number, or of a text that is one; otherwise `missing`. Null is missing.
int64_t IntegerOr(const PlainData::Value* value, int64_t missing);

// Returns the text, or "" for another type.
std::string_view TextOf(const PlainData::Value* value);

}  // namespace ott

#endif  // OTT_CORE_PICKLE_PLAIN_DATA_H_
