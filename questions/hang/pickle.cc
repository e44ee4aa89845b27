#include "ott/questions/hang/pickle.h"

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"

namespace ott::hang {
namespace {

using Index = PlainData::Index;
using Type = PlainData::Type;

// Of pickletools, Python's description of the format.
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
};

// Those that a user may meet; the rest are named by number.
const char* NameOfRefused(uint8_t opcode) {
  switch (opcode) {
    case 'c':
      return "GLOBAL";
    case 0x93:
      return "STACK_GLOBAL";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x92:
      return "NEWOBJ_EX";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    case 0x8b:
      return "LONG4";
    case 0x8c:
      return "SHORT_BINUNICODE";
    case 0x94:
      return "MEMOIZE";
    case 0x95:
      return "FRAME";
    default:
      return "";
  }
}

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

 private:
  absl::Status Invalid(size_t at, std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("no pickle of plain data: ", std::string(what), " at byte ", at));
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

  void PushInteger(int64_t integer, Type type = Type::kInteger) {
    stack_.push_back(data_.Add(type));
    data_[stack_.back()].integer = integer;
  }

  absl::Status Execute(uint8_t opcode, size_t start);
  absl::Status PushLong();
  absl::Status PushReal();
  absl::Status PushText();
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
};

absl::Status Reader::Execute(uint8_t opcode, size_t start) {
  switch (opcode) {
    case kProto: {
      OTT_ASSIGN_OR_RETURN(const uint64_t version, TakeUnsigned(1));
      return version == 2 ? absl::OkStatus() : Invalid(start, absl::StrCat("protocol ", version));
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
      return PushLong();
    case kBinFloat:
      return PushReal();
    case kBinUnicode:
      return PushText();
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
      const size_t floor = marks_.empty() ? 0 : marks_.back();
      if (stack_.size() < floor + count) return Invalid(start, "a tuple of values that are not there");
      return PushTuple(stack_.size() - count);
    }
    case kTuple: {
      if (marks_.empty()) return Invalid(start, "TUPLE without MARK");
      const size_t begin = marks_.back();
      marks_.pop_back();
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
    default: {
      const char* const name = NameOfRefused(opcode);
      return Invalid(start, absl::StrFormat("opcode %s (0x%02x) is refused",
                                            *name != 0 ? name : "unknown here", opcode));
    }
  }
}

absl::Status Reader::PushLong() {
  OTT_ASSIGN_OR_RETURN(const uint64_t size, TakeUnsigned(1));
  if (size > 8) return Invalid(at_, absl::StrCat("an integer of ", size, " bytes"));
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

absl::Status Reader::PushText() {
  OTT_ASSIGN_OR_RETURN(const uint64_t size, TakeUnsigned(4));
  OTT_ASSIGN_OR_RETURN(const std::string_view text, Take(size));
  stack_.push_back(data_.Add(Type::kText));
  data_[stack_.back()].text = ValidUtf8Length(text) == text.size() ? text : data_.Keep(ValidUtf8(text));
  return absl::OkStatus();
}

absl::Status Reader::Remember(size_t size_of_key, size_t start) {
  OTT_ASSIGN_OR_RETURN(const uint64_t key, TakeUnsigned(size_of_key));
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) return Invalid(start, "nothing to remember");
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
  if (marks_.empty()) return Invalid(start, "a container is filled without MARK");
  const size_t begin = marks_.back();
  marks_.pop_back();
  return CollectLast(stack_.size() - begin, type, start);
}

absl::Status Reader::CollectLast(size_t count, Type type, size_t start) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() < floor + count + 1) return Invalid(start, "a container is filled that is not there");
  const size_t begin = stack_.size() - count;
  PlainData::Value& container = data_[stack_[begin - 1]];
  if (container.type != type) return Invalid(start, "what is filled is no container of its kind");
  if (type == Type::kMap && count % 2 != 0) return Invalid(start, "a key without a value");
  container.items.insert(container.items.end(), stack_.begin() + static_cast<ptrdiff_t>(begin), stack_.end());
  stack_.resize(begin);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlainData> ParsePickle(std::string_view bytes, PlainData::Index* root) {
  Reader reader(bytes);
  OTT_ASSIGN_OR_RETURN(*root, reader.Run());
  return reader.TakeData();
}

}  // namespace ott::hang
