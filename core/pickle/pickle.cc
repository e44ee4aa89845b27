#include "ott/core/pickle/pickle.h"

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"

namespace ott {
namespace {

using Index = PlainData::Index;
using Type = PlainData::Type;

// The opcodes are those of pickletools, Python's description of the format.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kNone = 'N',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kEmptyTuple = ')',
  kTuple = 't',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBuild = 'b',
  kGlobal = 'c',
  kReduce = 'R',
  kBinPersId = 'Q',
  kNewObj = 0x81,
  kNewObjEx = 0x92,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kByteArray8 = 0x96,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<Index> Run() {
    if (!bytes_.empty() && static_cast<uint8_t>(bytes_[0]) != kProto) return Invalid(0, "no PROTO");
    while (true) {
      const size_t start = at_;
      OTT_ASSIGN_OR_RETURN(const std::string_view opcode, Take(1));
      if (static_cast<uint8_t>(opcode[0]) == kStop) {
        if (stack_.size() != 1 || !marks_.empty()) return Invalid(start, "STOP with other than one value");
        return stack_[0];
      }
      OTT_RETURN_IF_ERROR(Execute(static_cast<uint8_t>(opcode[0]), start));
    }
  }

  PlainData TakeData() { return std::move(data_); }
  size_t position() const { return at_; }

 private:
  absl::Status Invalid(size_t at, std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("no pickle that can be read: ", std::string(what), " at byte ", at));
  }

  absl::StatusOr<std::string_view> Take(uint64_t size) {
    if (size > bytes_.size() - at_) {
      return absl::DataLossError(absl::StrCat("truncated at byte ", bytes_.size(), ": ",
                                              size - (bytes_.size() - at_),
                                              " more bytes expected; was the job killed while it wrote?"));
    }
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  // Little-endian.
  absl::StatusOr<uint64_t> TakeUnsigned(size_t size) {
    OTT_ASSIGN_OR_RETURN(const std::string_view taken, Take(size));
    uint64_t number = 0;
    for (size_t i = size; i-- > 0;) number = number << 8 | static_cast<uint8_t>(taken[i]);
    return number;
  }

  // Values below it are out of reach until the last mark is gone.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }

  void PushInteger(int64_t integer, Type type = Type::kInteger) {
    stack_.push_back(data_.Add(type));
    data_[stack_.back()].integer = integer;
  }

  absl::Status Execute(uint8_t opcode, size_t start);
  absl::Status PushLong(size_t size_of_size);
  absl::Status PushReal();
  // Bytes behind a size of so many bytes.
  absl::Status PushBytes(size_t size_of_size, Type type);
  absl::Status PushGlobalOfLines();
  absl::Status PushGlobalOfTexts(size_t start);
  // Calls, in name, the value below the arguments.
  absl::Status PushObject(bool with_entries, size_t start);
  // The object that calling a set's class would make.
  void PushSet(std::string_view name);
  absl::Status Build(size_t start);
  // The top value above the last mark.
  absl::StatusOr<Index> Pop(size_t start);
  absl::StatusOr<size_t> PopMark(size_t start);
  // An object's list or map, made where it has none yet.
  Index ContainerOf(Index value, Type type);
  absl::Status Remember(size_t size_of_key, size_t start);
  absl::Status Recall(size_t size_of_key, size_t start);
  // Moves the values above the last mark, or the last `count`, into the container below them, or into a new
  // list.
  absl::Status Collect(Type type, size_t start);
  absl::Status CollectLast(size_t count, Type type, size_t start);
  absl::Status PushTuple(size_t begin);

  const std::string_view bytes_;
  size_t at_ = 0;
  PlainData data_;
  std::vector<Index> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Index> memo_;
  size_t num_kept_ = 0;
};

absl::Status Reader::Execute(uint8_t opcode, size_t start) {
  switch (opcode) {
    case kProto: {
      OTT_ASSIGN_OR_RETURN(const uint64_t version, TakeUnsigned(1));
      return version >= 2 && version <= 5 ? absl::OkStatus()
                                          : Invalid(start, absl::StrCat("protocol ", version));
    }
    case kMark:
      marks_.push_back(stack_.size());
      return absl::OkStatus();
    case kNone:
      stack_.push_back(data_.Add(Type::kNone));
      return absl::OkStatus();
    case kNewTrue:
    case kNewFalse:
      PushInteger(opcode == kNewTrue, Type::kBool);
      return absl::OkStatus();
    case kBinInt1:
    case kBinInt2:
    case kBinInt: {
      OTT_ASSIGN_OR_RETURN(const uint64_t number, TakeUnsigned(opcode == kBinInt1   ? 1
                                                               : opcode == kBinInt2 ? 2
                                                                                    : 4));
      PushInteger(opcode == kBinInt ? static_cast<int32_t>(number) : static_cast<int64_t>(number));
      return absl::OkStatus();
    }
    case kLong1:
      return PushLong(1);
    case kBinFloat:
      return PushReal();
    case kBinUnicode:
      return PushBytes(4, Type::kText);
    case kEmptyList:
    case kEmptyTuple:
      stack_.push_back(data_.Add(Type::kList));
      return absl::OkStatus();
    case kEmptyDict:
      stack_.push_back(data_.Add(Type::kMap));
      return absl::OkStatus();
    case kTuple1:
    case kTuple2:
    case kTuple3: {
      const size_t count = opcode - kTuple1 + 1;
      if (stack_.size() < Floor() + count) return Invalid(start, "a tuple of values that are not there");
      return PushTuple(stack_.size() - count);
    }
    case kTuple: {
      OTT_ASSIGN_OR_RETURN(const size_t begin, PopMark(start));
      return PushTuple(begin);
    }
    case kAppends:
      return Collect(Type::kList, start);
    case kSetItems:
      return Collect(Type::kMap, start);
    case kAppend:
      return CollectLast(1, Type::kList, start);
    case kSetItem:
      return CollectLast(2, Type::kMap, start);
    case kBinPut:
      return Remember(1, start);
    case kLongBinPut:
      return Remember(4, start);
    case kBinGet:
      return Recall(1, start);
    case kLongBinGet:
      return Recall(4, start);
    case kPop:
      return Pop(start).status();
    case kPopMark: {
      OTT_ASSIGN_OR_RETURN(const size_t begin, PopMark(start));
      stack_.resize(begin);
      return absl::OkStatus();
    }
    case kDup: {
      OTT_ASSIGN_OR_RETURN(const Index top, Pop(start));
      stack_.insert(stack_.end(), 2, top);
      return absl::OkStatus();
    }
    case kShortBinUnicode:
      return PushBytes(1, Type::kText);
    case kBinUnicode8:
      return PushBytes(8, Type::kText);
    case kShortBinString:
      return PushBytes(1, Type::kText);
    case kBinString:
      return PushBytes(4, Type::kText);
    case kShortBinBytes:
      return PushBytes(1, Type::kBytes);
    case kBinBytes:
      return PushBytes(4, Type::kBytes);
    case kBinBytes8:
    case kByteArray8:
      return PushBytes(8, Type::kBytes);
    case kLong4:
      return PushLong(4);
    case kEmptySet:
      PushSet("builtins.set");
      return absl::OkStatus();
    case kAddItems:
      return Collect(Type::kList, start);
    case kFrozenSet: {
      OTT_ASSIGN_OR_RETURN(const size_t begin, PopMark(start));
      OTT_RETURN_IF_ERROR(PushTuple(begin));
      const Index items = stack_.back();
      stack_.pop_back();
      PushSet("builtins.frozenset");
      data_[stack_.back()].items[PlainData::kElements] = items;
      return absl::OkStatus();
    }
    case kMemoize:
      if (stack_.size() <= Floor()) return Invalid(start, "nothing to remember");
      memo_[memo_.size()] = stack_.back();
      return absl::OkStatus();
    case kFrame:
      return TakeUnsigned(8).status();
    case kGlobal:
      return PushGlobalOfLines();
    case kStackGlobal:
      return PushGlobalOfTexts(start);
    case kReduce:
    case kNewObj:
      return PushObject(/*with_entries=*/false, start);
    case kNewObjEx:
      return PushObject(/*with_entries=*/true, start);
    case kBuild:
      return Build(start);
    case kBinPersId: {
      OTT_ASSIGN_OR_RETURN(const Index name, Pop(start));
      stack_.push_back(data_.Add(Type::kPersistent));
      data_[stack_.back()].items = {name};
      return absl::OkStatus();
    }
    default:
      return Invalid(start, absl::StrFormat("opcode 0x%02x, which no pickler writes today,", opcode));
  }
}

absl::StatusOr<Index> Reader::Pop(size_t start) {
  if (stack_.size() <= Floor()) return Invalid(start, "a value that is not there");
  const Index top = stack_.back();
  stack_.pop_back();
  return top;
}

absl::StatusOr<size_t> Reader::PopMark(size_t start) {
  if (marks_.empty()) return Invalid(start, "a container without MARK");
  const size_t begin = marks_.back();
  marks_.pop_back();
  return begin;
}

absl::Status Reader::PushGlobalOfLines() {
  std::string name;
  for (const char* const separator : {".", ""}) {
    const size_t end = bytes_.find('\n', at_);
    OTT_ASSIGN_OR_RETURN(const std::string_view line, Take((end == bytes_.npos ? bytes_.size() : end) - at_));
    OTT_RETURN_IF_ERROR(Take(1).status());
    name += ValidUtf8(line) + separator;
  }
  stack_.push_back(data_.Add(Type::kGlobal));
  data_[stack_.back()].text = data_.Keep(std::move(name));
  return absl::OkStatus();
}

absl::Status Reader::PushGlobalOfTexts(size_t start) {
  OTT_ASSIGN_OR_RETURN(const Index name, Pop(start));
  OTT_ASSIGN_OR_RETURN(const Index module, Pop(start));
  if (data_[name].type != Type::kText || data_[module].type != Type::kText) {
    return Invalid(start, "STACK_GLOBAL without two texts");
  }
  // Kept as a copy, which a text that is named many times would make many of.
  num_kept_ += data_[module].text.size() + data_[name].text.size();
  if (num_kept_ > 16 * bytes_.size()) return Invalid(start, "names that are repeated without end");
  stack_.push_back(data_.Add(Type::kGlobal));
  data_[stack_.back()].text =
      data_.Keep(absl::StrCat(std::string(data_[module].text), ".", std::string(data_[name].text)));
  return absl::OkStatus();
}

absl::Status Reader::PushObject(bool with_entries, size_t start) {
  Index entries = PlainData::kNoValue;
  if (with_entries) {
    OTT_ASSIGN_OR_RETURN(entries, Pop(start));
    if (data_[entries].type != Type::kMap) return Invalid(start, "arguments by name that are no map");
  }
  OTT_ASSIGN_OR_RETURN(Index arguments, Pop(start));
  OTT_ASSIGN_OR_RETURN(const Index callee, Pop(start));
  if (data_[arguments].type != Type::kList) return Invalid(start, "arguments that are no tuple");
  // The function that is called here has no name, since another call made it. It is kept in front of the
  // arguments.
  const bool is_named = data_[callee].type == Type::kGlobal;
  if (!is_named) {
    const Index both = data_.Add(Type::kList);
    data_[both].items = {callee, arguments};
    arguments = both;
  }
  stack_.push_back(data_.Add(Type::kObject));
  PlainData::Value& object = data_[stack_.back()];
  if (is_named) object.text = data_[callee].text;
  object.items.assign(PlainData::kNumObjectItems, PlainData::kNoValue);
  object.items[PlainData::kArguments] = arguments;
  object.items[PlainData::kEntries] = entries;
  return absl::OkStatus();
}

void Reader::PushSet(std::string_view name) {
  const Index arguments = data_.Add(Type::kList);
  stack_.push_back(data_.Add(Type::kObject));
  PlainData::Value& object = data_[stack_.back()];
  object.text = name;
  object.items.assign(PlainData::kNumObjectItems, PlainData::kNoValue);
  object.items[PlainData::kArguments] = arguments;
}

absl::Status Reader::Build(size_t start) {
  OTT_ASSIGN_OR_RETURN(const Index state, Pop(start));
  if (stack_.size() <= Floor() || data_[stack_.back()].type != Type::kObject) {
    return Invalid(start, "a state of what is no object");
  }
  data_[stack_.back()].items[PlainData::kState] = state;
  return absl::OkStatus();
}

Index Reader::ContainerOf(Index value, Type type) {
  if (data_[value].type != Type::kObject) return value;
  const auto item = type == Type::kMap ? PlainData::kEntries : PlainData::kElements;
  if (data_[value].items[item] == PlainData::kNoValue) {
    const Index container = data_.Add(type);
    data_[value].items[item] = container;
  }
  return data_[value].items[item];
}

absl::Status Reader::PushLong(size_t size_of_size) {
  OTT_ASSIGN_OR_RETURN(const uint64_t size, TakeUnsigned(size_of_size));
  if (size > 8) {
    // Generators of random numbers have such integers; their bytes are as good to compare.
    OTT_ASSIGN_OR_RETURN(const std::string_view bytes, Take(size));
    stack_.push_back(data_.Add(Type::kBytes));
    data_[stack_.back()].text = bytes;
    return absl::OkStatus();
  }
  OTT_ASSIGN_OR_RETURN(uint64_t number, TakeUnsigned(size));
  if (size > 0 && size < 8 && (number >> (8 * size - 1)) != 0) number |= ~uint64_t{0} << (8 * size);
  PushInteger(static_cast<int64_t>(number));
  return absl::OkStatus();
}

absl::Status Reader::PushReal() {
  OTT_ASSIGN_OR_RETURN(const std::string_view big_endian, Take(8));
  uint64_t bits = 0;
  for (const char byte : big_endian) bits = bits << 8 | static_cast<uint8_t>(byte);
  stack_.push_back(data_.Add(Type::kReal));
  std::memcpy(&data_[stack_.back()].real, &bits, sizeof(bits));
  return absl::OkStatus();
}

absl::Status Reader::PushBytes(size_t size_of_size, Type type) {
  OTT_ASSIGN_OR_RETURN(const uint64_t size, TakeUnsigned(size_of_size));
  OTT_ASSIGN_OR_RETURN(const std::string_view text, Take(size));
  const bool is_valid = type == Type::kBytes || ValidUtf8Length(text) == text.size();
  // Texts that are none, as Python 2 has them and as lone surrogates are, keep what they differ in.
  stack_.push_back(data_.Add(is_valid ? type : Type::kBytes));
  data_[stack_.back()].text = text;
  return absl::OkStatus();
}

absl::Status Reader::Remember(size_t size_of_key, size_t start) {
  OTT_ASSIGN_OR_RETURN(const uint64_t key, TakeUnsigned(size_of_key));
  if (stack_.size() <= Floor()) return Invalid(start, "nothing to remember");
  memo_[key] = stack_.back();
  return absl::OkStatus();
}

absl::Status Reader::Recall(size_t size_of_key, size_t start) {
  OTT_ASSIGN_OR_RETURN(const uint64_t key, TakeUnsigned(size_of_key));
  const auto found = memo_.find(key);
  if (found == memo_.end()) return Invalid(start, absl::StrCat("memo ", key, ", which was never set,"));
  stack_.push_back(found->second);
  return absl::OkStatus();
}

absl::Status Reader::PushTuple(size_t begin) {
  const Index tuple = data_.Add(Type::kList);
  data_[tuple].items.assign(stack_.begin() + static_cast<ptrdiff_t>(begin), stack_.end());
  stack_.resize(begin);
  stack_.push_back(tuple);
  return absl::OkStatus();
}

absl::Status Reader::Collect(Type type, size_t start) {
  OTT_ASSIGN_OR_RETURN(const size_t begin, PopMark(start));
  return CollectLast(stack_.size() - begin, type, start);
}

absl::Status Reader::CollectLast(size_t count, Type type, size_t start) {
  if (stack_.size() < Floor() + count + 1) return Invalid(start, "a container is filled that is not there");
  const size_t begin = stack_.size() - count;
  PlainData::Value& container = data_[ContainerOf(stack_[begin - 1], type)];
  if (container.type != type) return Invalid(start, "what is filled is no container of its kind");
  if (type == Type::kMap && count % 2 != 0) return Invalid(start, "a key without a value");
  container.items.insert(container.items.end(), stack_.begin() + static_cast<ptrdiff_t>(begin), stack_.end());
  stack_.resize(begin);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Pickle> ParsePickle(std::string_view bytes) {
  Reader reader(bytes);
  Pickle pickle;
  OTT_ASSIGN_OR_RETURN(pickle.root, reader.Run());
  pickle.data = reader.TakeData();
  pickle.num_bytes = reader.position();
  return pickle;
}

}  // namespace ott
