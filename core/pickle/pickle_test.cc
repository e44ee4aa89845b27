#include "ott/core/pickle/pickle.h"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using Type = PlainData::Type;

template <size_t kSize>
std::string Bytes(const char (&literal)[kSize]) {
  return std::string(literal, kSize - 1);
}

absl::Status ParseError(const std::string& pickle) { return ParsePickle(pickle).status(); }

TEST(Pickle, WhatIsUnknownIsAnErrorThatNamesIt) {
  EXPECT_THAT(ParseError("\x80\x02\x01.").message(),
              HasSubstr("opcode 0x01, which no pickler writes today, at byte 2"));
  for (char version = 0; version < 8; ++version)
    EXPECT_EQ(ParseError(absl::StrCat("\x80", std::string(1, version), "N.")).ok(),
              version >= 2 && version <= 5);
  EXPECT_THAT(ParseError("N.").message(), HasSubstr("no PROTO"));
}

TEST(Pickle, StacksThatDoNotFitAreErrors) {
  for (const char* const bad : {".", "NN.", "(.", "N(.", "e.", "}(Nu.", "}(NNNu.", "}(NNe.", "h\x07."})
    EXPECT_EQ(ParseError(absl::StrCat("\x80\x02", bad)).code(), absl::StatusCode::kInvalidArgument) << bad;
}

TEST(Pickle, AnOpcodeNeedsItsValuesAboveTheMarkAndOfTheirKind) {
  // "N" stands for a value of any kind.
  const std::vector<std::pair<std::string, std::vector<std::string>>> opcodes = {
      {"0", {"N"}},           {"2", {"N"}},         {"\x94", {"N"}},           {"q\1", {"N"}},
      {"Q", {"N"}},           {"\x85", {"N"}},      {"\x86", {"N", "N"}},      {"\x87", {"N", "N", "N"}},
      {"a", {"]", "N"}},      {"R", {"N", ")"}},    {"\x81", {"N", ")"}},      {"\x92", {"N", ")", "}"}},
      {"s", {"}", "N", "N"}}, {"b", {"\x8f", "N"}}, {"\x93", {"U\1a", "U\1b"}}};
  for (const auto& [opcode, values] : opcodes) {
    const auto error_with = [&opcode = opcode](const std::vector<std::string>& given, size_t mark) {
      std::string bytes = "\x80\x04";
      for (size_t i = 0; i < given.size(); ++i) absl::StrAppend(&bytes, i == mark ? "(" : "", given[i]);
      if (mark == given.size()) bytes += "(";
      const absl::Status status = ParseError(absl::StrCat(bytes, opcode, "1N."));
      if (!status.ok()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(status.message()), EndsWith(absl::StrCat(" at byte ", bytes.size())));
      }
      return !status.ok();
    };
    for (size_t mark = 0; mark <= values.size(); ++mark)
      EXPECT_EQ(error_with(values, mark), mark > 0) << absl::CHexEscape(opcode) << " " << mark;
    for (size_t i = 0; i < values.size(); ++i) {
      std::vector<std::string> wrong = values;
      wrong[i] = "N";
      EXPECT_EQ(error_with(wrong, 0), values[i] != "N") << absl::CHexEscape(opcode) << " " << i;
    }
  }
}

TEST(Pickle, NumbersAndTextsThatAreOneAreIntegersIfTheyFit) {
  const std::string bytes = Bytes(
      "\x80\x02("
      "J\xff\xff\xff\xff\x88G\x40\x04\0\0\0\0\0\0G\xc0\x04\0\0\0\0\0\0G\x43\xe1\x58\xe4\x60\x91\x3d\0"
      "G\xc3\xe1\x58\xe4\x60\x91\x3d\0G\x7f\xf8\0\0\0\0\0\0U\2"
      "12U\1x]C\1"
      "1t.");
  const auto pickle = ParsePickle(bytes);
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  const PlainData& data = pickle->data;
  std::vector<int64_t> integers = {IntegerOr(nullptr, -7)};
  for (const PlainData::Index item : data[pickle->root].items) integers.push_back(IntegerOr(&data[item], -7));
  EXPECT_THAT(integers, ElementsAre(-7, -1, 1, 2, -2, -7, -7, -7, 12, -7, -7, -7));
}

TEST(Pickle, AKeyIsFoundByItsFirstTextAndNothingElse) {
  const std::string map = Bytes("\x80\x04}(C\1kK\1K\5K\4U\1kK\2X\1\0\0\0kK\3u.");
  const auto pickle = ParsePickle(map);
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  const auto find = [&](std::string_view key) {
    return IntegerOr(pickle->data.Find(pickle->data[pickle->root], key), -1);
  };
  EXPECT_EQ(find("k"), 2);
  EXPECT_EQ(find(""), -1);
  const auto list = ParsePickle("\x80\x04]U\1kaK\2a.");
  EXPECT_EQ(list->data.Find(list->data[list->root], "k"), nullptr);
  EXPECT_EQ(TextOf(&list->data[list->data[list->root].items[0]]), "k");
  for (const auto* const none :
       {&pickle->data[1], &list->data[list->root], static_cast<const PlainData::Value*>(nullptr)})
    EXPECT_EQ(TextOf(none), "");
}

TEST(Pickle, NamesThatAreRepeatedWithoutEndAreRefused) {
  for (const size_t module : {1, 300, 599}) {
    const size_t name = 600 - module;
    std::string bytes = "\x80\x04";
    for (const size_t size : {module, name})
      bytes += Bytes("X") + static_cast<char>(size) + static_cast<char>(size >> 8) + Bytes("\0\0") +
               std::string(size, 'n') + "\x94";
    for (size_t times = 1; times < 60; ++times) {
      bytes += Bytes("h\0h\1\x93");
      const std::string whole = absl::StrCat(bytes, "(1", std::string(times + 1, '0'), ".");
      EXPECT_EQ(ParseError(whole).ok(), 600 * times <= 16 * whole.size()) << module << " " << times;
    }
  }
}

// Pickles a random value in one of the ways there are, and says what is to be read.
class Pickler {
 public:
  explicit Pickler(uint32_t seed) : random_(seed) {}

  const std::string& bytes() const { return bytes_; }

  std::string Value(int depth) {
    if (Draw(9) == 0) {
      if (Draw(2) == 0) Put(Bytes("\x95\7\0\0\0\0\0\0\0"));
      Value(0);
      Put("0(");
      Items(0, Draw(3));
      Put("1");
    }
    if (Draw(4) == 0 && !known_.empty()) {
      const auto& [key, shown] = *std::next(known_.begin(), static_cast<int>(Draw(known_.size())));
      return key > 255 ? Put("j", key, 4, shown) : Put("h", key, 1, shown);
    }
    const std::string shown = depth == 0 ? Leaf() : Container(depth);
    if (Draw(3) == 0) {
      known_.insert_or_assign(known_.size(), shown);
      Put("\x94");
    }
    const uint64_t key = Draw(2) == 0 ? Draw(70000) : Draw(9);
    if (Draw(5) != 0) return shown;
    known_.insert_or_assign(key, shown);
    return key > 255 ? Put("r", key, 4, shown) : Put("q", key, 1, shown);
  }

 private:
  uint64_t Draw(uint64_t count) { return random_() % count; }

  std::string Put(const std::string& bytes, std::string shown = "") {
    bytes_ += bytes;
    return shown;
  }
  std::string Put(const std::string& opcode, uint64_t number, int size, std::string shown = "") {
    bytes_ += opcode;
    for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<char>(number >> (8 * i)));
    return shown;
  }

  std::string Leaf() {
    switch (Draw(7)) {
      case 0:
        return Put("N", "None");
      case 1:
        return Put("\x88", "True");
      case 2:
        return Put("\x89", "False");
      case 3: {
        const uint64_t bits = random_();
        double real;
        std::memcpy(&real, &bits, sizeof(real));
        return Put("G", __builtin_bswap64(bits), 8, absl::StrFormat("%a", real));
      }
      case 4:
        return Sized({{"B", 4}, {"C", 1}, {"\x8e", 8}, {"\x96", 8}}, false);
      case 5:
        return Sized({{"X", 4}, {"U", 1}, {"T", 4}, {"\x8c", 1}, {"\x8d", 8}}, true);
      default:
        return Integer();
    }
  }

  std::string Sized(const std::vector<std::pair<std::string, int>>& forms, bool is_text) {
    const auto& [opcode, size_of_size] = forms[Draw(forms.size())];
    const std::string text = std::vector<std::string>{"", "a", "\xc3\xa9", "a\xff", "\xc3"}[Draw(5)];
    Put(opcode, text.size(), size_of_size);
    const bool is_valid = text.empty() || text == "a" || text == "\xc3\xa9";
    return Put(text, absl::StrCat(is_text && is_valid ? "text" : "bytes", " ", absl::CHexEscape(text)));
  }

  // In two's complement, the byte with the sign last.
  std::string Integer() {
    const size_t form = Draw(5), size = form < 3 ? size_t{1} << form : Draw(11);
    Put(std::vector<std::string>{"K", "M", "J", "\x8a", "\x8b"}[form], size,
        form < 3    ? 0
        : form == 3 ? 1
                    : 4);
    std::string digits;
    for (size_t i = 0; i < size; ++i) digits.push_back(static_cast<char>(Draw(3) == 0 ? 0 : random_()));
    Put(digits);
    if (size > 8) return "bytes " + absl::CHexEscape(digits);
    uint64_t integer = size > 0 && form >= 2 && digits.back() < 0 ? ~uint64_t{0} : 0;
    for (size_t i = size; i-- > 0;) integer = integer << 8 | static_cast<unsigned char>(digits[i]);
    return absl::StrCat(static_cast<int64_t>(integer));
  }

  std::string Items(int depth, size_t count) {
    std::string shown;
    for (; count > 0; --count) absl::StrAppend(&shown, Value(depth), ",");
    return shown;
  }
  std::string Marked(int depth, size_t count, const std::string& opcode) {
    Put("(");
    std::string shown = Items(depth, count);
    return Put(opcode, shown);
  }
  // The container below: items one by one, or many at once.
  std::string Fill(int depth, bool is_map) {
    const size_t size = is_map ? 2 : 1;
    std::string shown;
    for (size_t left = Draw(3); left > 0; --left) {
      if (Draw(2) == 0) {
        shown += Marked(depth, size * Draw(3), is_map ? "u" : "e");
      } else {
        shown += Items(depth, size);
        Put(is_map ? "s" : "a");
      }
    }
    return shown;
  }

  std::string Tuple(int depth) {
    const size_t count = Draw(5);
    if (count > 3 || Draw(2) == 0) return "[" + Marked(depth, count, "t") + "]";
    std::string shown = Items(depth, count);
    return Put(std::vector<std::string>{")", "\x85", "\x86", "\x87"}[count], "[" + shown + "]");
  }

  std::string Global() { return Draw(2) == 0 ? Put("ca.b\nC\n", "a.b.C") : Put("U\3a.bU\1C\x93", "a.b.C"); }

  std::string Container(int depth) {
    switch (Draw(8)) {
      case 0:
        Put("]");
        return "[" + Fill(depth - 1, false) + "]";
      case 1:
        return Tuple(depth - 1);
      case 2:
        Put("}");
        return "{" + Fill(depth - 1, true) + "}";
      case 3:
        Put("\x8f");
        return "builtins.set([])[" + Marked(depth - 1, Draw(3), "\x90") + "]";
      case 4:
        return "builtins.frozenset([])[" + Marked(depth - 1, Draw(3), "\x91") + "]";
      case 5: {
        const std::string shown = Value(depth - 1);
        return Draw(2) == 0 ? Put("Q", "persistent " + shown)
                            : Put("2\x86", absl::StrCat("[", shown, ",", shown, ",]"));
      }
      case 6:
        return "global " + Global();
      default:
        return Object(depth - 1);
    }
  }

  // Writes the call of a global or of another value, which then is shown before the arguments.
  std::string Object(int depth) {
    const bool by_name = Draw(3) == 0;
    const std::string callee = Draw(3) != 0 ? "global " + Global() : Value(0);
    const std::string arguments = Tuple(depth);
    std::string shown = absl::StartsWith(callee, "global ")
                            ? absl::StrCat(callee.substr(7), "(", arguments, ")")
                            : absl::StrCat("([", callee, ",", arguments, ",])");
    std::string entries;
    if (by_name) {
      Put("}");
      entries = Fill(depth, true);
    }
    Put(by_name ? "\x92" : Draw(2) == 0 ? "R" : "\x81");
    const bool is_map = by_name || Draw(2) == 0, is_list = Draw(2) == 0;
    if (is_map) absl::StrAppend(&entries, Marked(depth, 2 * Draw(2), "u"));
    const std::string elements = is_list ? Marked(depth, Draw(3), "e") : "";
    if (Draw(2) == 0) {
      absl::StrAppend(&shown, "/", Value(depth));
      Put("b");
    }
    return absl::StrCat(shown, is_map ? "{" + entries + "}" : "", is_list ? "[" + elements + "]" : "");
  }

  std::mt19937_64 random_;
  std::string bytes_ = "\x80\x04";
  std::map<uint64_t, std::string> known_;
};

std::string Show(const PlainData& data, PlainData::Index index) {
  if (index == PlainData::kNoValue) return "";
  const PlainData::Value& value = data[index];
  std::vector<std::string> items;
  for (const PlainData::Index item : value.items) items.push_back(Show(data, item));
  std::string all;
  for (const std::string& item : items) absl::StrAppend(&all, item, ",");
  const std::string text(value.text);
  switch (value.type) {
    case Type::kNone:
      return "None";
    case Type::kBool:
      return value.integer == 1 ? "True" : "False";
    case Type::kInteger:
      return absl::StrCat(value.integer);
    case Type::kReal:
      return absl::StrFormat("%a", value.real);
    case Type::kText:
      return "text " + absl::CHexEscape(text);
    case Type::kBytes:
      return "bytes " + absl::CHexEscape(text);
    case Type::kList:
      return "[" + all + "]";
    case Type::kMap:
      return "{" + all + "}";
    case Type::kGlobal:
      return "global " + text;
    case Type::kPersistent:
      return "persistent " + items[0];
    case Type::kObject:
      return absl::StrCat(text, "(", items[0], ")", items[1].empty() ? "" : "/" + items[1], items[2],
                          items[3]);
  }
  return "";
}

TEST(Pickle, EachValueIsReadAndNothingElseHoweverItIsWritten) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    Pickler pickler(seed);
    const std::string expected = pickler.Value(static_cast<int>(seed % 4));
    const std::string bytes = pickler.bytes() + ".";
    const std::string with_more = bytes + "more";
    const auto pickle = ParsePickle(with_more);
    ASSERT_TRUE(pickle.ok()) << seed << ": " << pickle.status();
    EXPECT_EQ(Show(pickle->data, pickle->root), expected) << seed;
    EXPECT_EQ(pickle->num_bytes, bytes.size());
    EXPECT_EQ(ParseError(bytes.substr(0, seed % bytes.size())).code(), absl::StatusCode::kDataLoss) << seed;
  }
}

TEST(Pickle, AFileCutAnywhereIsAnErrorThatSaysHowMuchIsMissing) {
  const std::string bytes = Bytes("\x80\x02X\5\0\0\0abcde.");
  const int missing[] = {1, 1, 1, 4, 3, 2, 1, 5, 4, 3, 2, 1, 1};
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ParseError(bytes.substr(0, size)),
              absl::DataLossError(absl::StrCat("truncated at byte ", size, ": ", missing[size],
                                               " more bytes expected; was the job killed while it wrote?")));
  }
}

}  // namespace
}  // namespace ott
