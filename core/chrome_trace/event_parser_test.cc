#include "ott/core/chrome_trace/event_parser.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/chrome_trace/read_events.h"

namespace ott::chrome_trace {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(ReadEvents, ArgumentsAndMembersAreGivenAsTheyStand) {
  const std::string text =
      R"({"otherData": {"a":[1]}, "traceEvents": [{"args" : {"b": "}\"", "c": {"d":[ 2 ]} } , "ph":"X"},)"
      R"({"ph":"i"},{"ph":"X","args":{}},{"ph":"X","args":3}], "last": 4})";
  std::vector<std::string> args, members;
  const Reading reading =
      ReadEvents(*ByteSource::OfText(text), {[&](const Event& event) { args.emplace_back(event.all); },
                                             [&](std::string_view name, std::string_view json) {
                                               members.push_back(std::string(name).append(json));
                                             }});
  EXPECT_EQ(reading.num_events, 4);
  EXPECT_EQ(reading.cut, "");
  EXPECT_THAT(args, ElementsAre(R"({"b": "}\"", "c": {"d":[ 2 ]} })", "", "{}", ""));
  EXPECT_THAT(members, ElementsAre(R"(otherData{"a":[1]})", "last4"));
  ReadMembersBeforeEvents(*ByteSource::OfText(text),
                          [&](std::string_view name, std::string_view) { members.emplace_back(name); });
  EXPECT_THAT(members, ElementsAre(_, _, "otherData"));
}

// Returns the numbers, the lists, the texts and the texts without quotes that an event tells.
std::vector<std::string> FieldsOf(const Event& event) {
  const CollectiveArguments& of = event.collective;
  std::vector<std::string> fields;
  for (const int64_t number : {event.external_id, event.correlation, event.device, event.stream, event.bytes,
                               event.sequence_number, of.in_elements, of.out_elements, of.group_size,
                               of.sequence_number, event.start, event.duration, event.thread, event.flow_id})
    fields.push_back(number == kNoNumber ? "" : absl::StrCat(number));
  for (const std::string_view text :
       {event.dims, event.types, event.strides, event.inputs, event.grid, event.block, of.group_ranks,
        event.call_stack, event.module_hierarchy, event.metadata_name, of.name, of.dtype, of.group,
        of.group_description, event.name, event.kernel_flop, event.kernel_num_gb, event.process_text})
    fields.emplace_back(text);
  return fields;
}

TEST(ReadEvents, EachFieldIsOfItsNameAlone) {
  const std::vector<std::string> names[] = {{"External id", "external id"},
                                            {"correlation"},
                                            {"device"},
                                            {"stream"},
                                            {"bytes"},
                                            {"Sequence number"},
                                            {"In msg nelems"},
                                            {"Out msg nelems"},
                                            {"Group size"},
                                            {"Seq"},
                                            {"ts"},
                                            {"dur"},
                                            {"tid"},
                                            {"id"},
                                            {"Input Dims", "Input dims"},
                                            {"Input type"},
                                            {"Input Strides"},
                                            {"Concrete Inputs"},
                                            {"grid"},
                                            {"block"},
                                            {"Process Group Ranks"},
                                            {"Call stack"},
                                            {"Module Hierarchy"},
                                            {"name"},
                                            {"Collective name"},
                                            {"dtype"},
                                            {"Process Group Name"},
                                            {"Process Group Description"},
                                            {"name"},
                                            {"kernel_flop"},
                                            {"kernel_num_gb"},
                                            {"pid"}};
  const auto read = [](const std::string& event) {
    std::vector<std::string> all;
    // The first of them is read in a batch, the last one by itself.
    const auto add = [&](const Event& of) {
      all.push_back(absl::StrCat(absl::StrJoin(FieldsOf(of), "|"), of.has_bad_number ? " bad" : ""));
    };
    ReadEvents(*ByteSource::OfText(absl::StrCat("[", event, ",{},", event, "]")), {add});
    EXPECT_EQ(all.size(), 3u) << event;
    EXPECT_EQ(all.front(), all.back());
    EXPECT_EQ(all.at(1), std::string(31, '|'));
    return all.front();
  };
  for (size_t i = 0; i < std::size(names); ++i) {
    for (const std::string& name : names[i]) {
      const bool is_time = i == 10 || i == 11, is_argument = (i < 10 || i > 13) && i != 28 && i != 31;
      const auto of = [&](const std::string& key, const std::string& value) {
        const std::string member = absl::StrCat("\"", key, "\":", value);
        return read(is_argument ? absl::StrCat("{\"args\":{", member, "}}") : absl::StrCat("{", member, "}"));
      };
      const auto expected = [&](const std::string& value) {
        std::vector<std::string> fields(std::size(names));
        fields[i] = value;
        return absl::StrJoin(fields, "|");
      };
      SCOPED_TRACE(name);
      const std::string number = i < 14 ? absl::StrCat(7, is_time ? "000" : "") : i < 20 ? "" : "7";
      std::map<std::string, std::string> told = {{"7", expected(number)}, {R"("7")", expected(number)}};
      if (i < 10) told["null"] = told[R"("")"] = expected("");
      if (i < 12) told[R"("x")"] = expected("") + " bad";
      if (i >= 14 && i <= 20) told[R"([ "a]", 7 ])"] = expected(R"([ "a]", 7 ])");
      if (i >= 20 && i < 29) told[R"("\u0041\\")"] = expected("A\\");
      for (const auto& [value, fields] : told) EXPECT_EQ(of(name, value), fields) << value;
      for (const std::string& other : {name + "x", name.substr(0, name.size() - 1)})
        EXPECT_EQ(of(other, "7"), expected(""));
    }
  }
  for (const char* const category : {"python_function", "cpu_instant_event"})
    EXPECT_EQ(read(absl::StrCat(R"({"cat":")", category, R"(","args":{"bytes":7}})")), read("{}"));
  EXPECT_EQ(read(R"({"args":[7]})"), read("{}"));
}

TEST(IsOfTorch, OneOfTheFirstThousandEventsTellsUnlessItIsOurs) {
  for (const int num_before : {0, 999, 1000}) {
    for (const std::string member : {"", R"("a":1,)", R"("otherData":1,)"}) {
      std::string text = absl::StrCat("{", member, R"("traceEvents":[)");
      for (int i = 0; i < num_before; ++i) text += i % 2 == 0 ? R"({"ph":"M","cat":"kernel"},)" : "{},";
      const auto source = ByteSource::OfText(text += R"({"cat":"kernel"}]})");
      EXPECT_EQ(IsOfTorch(*source), num_before < 1000 && member.find("other") == member.npos) << num_before;
    }
  }
}

TEST(ReadEvents, EventsBeyondWindowsAreWhole) {
  std::string text = "[", expected;
  for (int i = 0; i < 30'000; ++i) {
    const std::string name(i == 20'000 ? 3'000'000 : 1 + i % 30, static_cast<char>('a' + i % 26));
    absl::StrAppend(&text, i == 0 ? "" : ",\n", R"({"name":")", name, R"("})");
    expected += name;
  }
  std::string read;
  const Reading reading =
      ReadEvents(*ByteSource::OfText(text + "]"), {[&](const Event& event) { read += event.name; }});
  EXPECT_TRUE(read == expected);
  EXPECT_THAT(reading.notes, testing::IsEmpty());
}

// Counts the mistakes of one kind. The first of them lies between begin and end: in an event, or before it.
struct Trouble {
  const char* what;
  int64_t count = 0, begin = 0, end = 0;

  void Add(int64_t of_begin, int64_t of_end) {
    if (count++ == 0) begin = of_begin, end = of_end;
  }
};

TEST(ReadEvents, OfAnyTextWhatIsWrongIsCountedAndPlacedAndAllElseIsRead) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const bool is_list = random() % 2 == 0;
    std::string text = is_list ? "[" : "{";
    std::vector<std::string> expected, read;
    std::vector<size_t> ends;  // of what is expected
    int64_t num_stray = 0;
    const auto stray = [&] {
      if (random() % 8 > 0) return;
      text += " nul ";
      num_stray += 3;
    };
    const auto member = [&](const std::string& name) {
      stray();
      absl::StrAppend(&text, "\"", name, "\": [", random() % 9, "]");
      expected.push_back(absl::StrCat(name, "=", text.substr(text.size() - 3)));
      ends.push_back(text.size());
      stray();
    };
    if (!is_list) {
      if (random() % 2 == 0) member("first"), text += ",";
      stray();
      text += "\"traceEvents\":[";
    }
    Trouble troubles[] = {{" events are no JSON"},
                          {" events have bytes that are no UTF-8"},
                          {" events have a number that is NaN"}};
    int64_t num_events = 0;
    for (int i = static_cast<int>(random() % 9); i > 0; --i) {
      const auto before = static_cast<int64_t>(text.size());
      if (num_events > 0 || troubles[0].count > 0) text += ",";
      stray();
      const auto begin = static_cast<int64_t>(text.size());
      const std::pair<const char*, const char*> events[] = {
          {R"({"name":"\u0041 \n","ts":1.5,"args":{"correlation":null,"stream":""}})", "A \n 1500"},
          {R"({"name" "b"})", ""},
          {R"({"name":"b" "ts":1})", ""},
          {"{\"name\":\"c\xff\"}", "c\xef\xbf\xbd none"},
          {"{\"name\":\"d\n\"}", "d  none"},
          {R"({"name":"e","ts":NaN})", "e none"},
          {R"({"ts":1e300,"name":"}],{\"\\"})", "}],{\"\\ none"}};
      const size_t kind = random() % 2 == 0 ? 0 : random() % 7;
      text += events[kind].first;
      if (kind > 0) troubles[(kind - 1) / 2].Add(kind > 4 ? before : begin, begin);
      const size_t end = text.size();
      stray();
      if (*events[kind].second == 0) continue;
      expected.push_back(events[kind].second);
      ends.push_back(end);
      ++num_events;
    }
    text += "]";
    if (!is_list) {
      if (random() % 2 == 0) text += ",", member("last");
      text += "}";
    }
    const Visitor visitor = {
        [&](const Event& event) {
          read.push_back(absl::StrCat(std::string(event.name),
                                      event.start == kNoNumber ? " none" : absl::StrCat(" ", event.start)));
        },
        [&](std::string_view name, std::string_view json) {
          read.push_back(absl::StrCat(std::string(name), "=", std::string(json)));
        }};
    const Reading reading = ReadEvents(*ByteSource::OfText(text), visitor);
    EXPECT_EQ(read, expected) << text;
    EXPECT_EQ(reading.num_events, num_events) << text;
    EXPECT_EQ(reading.num_left_out, troubles[0].count + num_stray) << text;
    EXPECT_EQ(reading.cut, "");
    EXPECT_EQ(reading.num_bytes, text.size());
    size_t note = 0;
    for (const Trouble& trouble : troubles) {
      if (trouble.count == 0) continue;
      ASSERT_LT(note, reading.notes.size());
      const std::string& said = reading.notes[note++];
      EXPECT_THAT(said, StartsWith(absl::StrCat(trouble.count, trouble.what)));
      const int64_t first = std::stoll(said.substr(said.rfind(' ')));
      EXPECT_TRUE(first >= trouble.begin && first <= trouble.end) << said << ", " << text;
    }
    if (num_stray > 0) {
      ASSERT_LT(note, reading.notes.size());
      EXPECT_EQ(reading.notes[note++], absl::StrCat(num_stray, " bytes between events are no JSON"));
    }
    EXPECT_EQ(note, reading.notes.size()) << text;
    // Cut, it has what was whole before, and says where it could not be followed any further.
    const size_t size = random() % text.size();
    const auto whole = std::upper_bound(ends.begin(), ends.end(), size);
    const auto num_read = static_cast<size_t>(whole - ends.begin());
    read.clear();
    const Reading cut = ReadEvents(*ByteSource::OfText(std::string_view(text).substr(0, size)), visitor);
    EXPECT_EQ(read, std::vector<std::string>(expected.begin(), expected.begin() + (whole - ends.begin())));
    EXPECT_EQ(cut.began, size > 0);
    if (size == 0) continue;
    EXPECT_EQ(cut.cut, absl::StrCat("truncated at byte ", cut.num_bytes, " of the JSON; the ", cut.num_events,
                                    " whole events before it are used"));
    EXPECT_TRUE(cut.num_bytes <= static_cast<int64_t>(size) &&
                cut.num_bytes >= static_cast<int64_t>(num_read == 0 ? 0 : ends[num_read - 1]));
  }
}

// A text in which ~ stands for 130 MiB.
class LongSource : public ByteSource {
 public:
  explicit LongSource(std::string_view text, std::string error = "")
      : text_(text), error_(std::move(error)) {}

  size_t Read(char* to, size_t size) override {
    size_t filled = 0;
    while (filled < size && !text_.empty()) {
      const size_t count = text_[0] == '~' ? std::min(size - filled, left_) : 1;
      std::memset(to + filled, text_[0], count);
      filled += count;
      if (text_[0] != '~' || (left_ -= count) == 0) text_.remove_prefix(1);
    }
    return filled;
  }
  std::string error() const override { return error_; }

 private:
  std::string_view text_;
  const std::string error_;
  size_t left_ = size_t{130} << 20;
};

TEST(ReadEvents, PartsThatAreFarTooLongAreLeftOut) {
  LongSource source(R"({"n":1,"traceEvents":[{"name":"~"},{"name":"a"}]})");
  std::vector<size_t> sizes;
  const Reading reading =
      ReadEvents(source, {[&](const Event& event) { sizes.push_back(event.name.size()); },
                          [&](std::string_view, std::string_view json) { sizes.push_back(json.size()); }});
  EXPECT_THAT(sizes, ElementsAre(1, 1));
  EXPECT_EQ(reading.num_left_out, 1);
  EXPECT_THAT(reading.notes, ElementsAre("1 parts of more than 64 MiB were left out"));
}

TEST(ReadEvents, AnErrorOfTheSourceCutsWhatItHas) {
  for (const char* const text : {"[{},{", "[{}]"}) {
    LongSource source(text, "no disk");
    EXPECT_EQ(ReadEvents(source, {[](const Event&) {}}).cut,
              "truncated (no disk) at byte 4 of the JSON; the 1 whole events before it are used");
  }
}

TEST(ReadEvents, TheCategoryTellsTheKindAndWithoutOneTheProcess) {
  using Kind = Event::Kind;
  const std::pair<Kind, std::vector<const char*>> categories[] = {
      {Kind::kOp, {"cpu_op", "Operator"}},
      {Kind::kRuntime, {"cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime", "x_driver", "Runtime"}},
      {Kind::kKernel, {"kernel", "Kernel"}},
      {Kind::kCopy, {"gpu_memcpy", "Memcpy"}},
      {Kind::kMemset, {"gpu_memset", "Memset"}},
      {Kind::kAnnotation, {"user_annotation"}},
      {Kind::kPython, {"python_function"}},
      {Kind::kLaunchFlow, {"ac2g", "async_cpu_to_gpu"}},
      {Kind::kPassFlow, {"fwdbwd", "forward_backward"}},
      {Kind::kOther, {"cuda_runtime2", "driver", "Kernels", "gpu_user_annotation"}},
  };
  std::string text;
  std::vector<Kind> expected, kinds;
  const auto add = [&](Kind kind, const std::string& fields) {
    absl::StrAppend(&text, text.empty() ? "[" : ",", "{", fields, "}");
    expected.push_back(kind);
  };
  for (const auto& [kind, names] : categories) {
    for (const char* const name : names)
      add(kind, absl::StrCat(R"("ph":"X","pid":"CPU functions","cat":")", name, "\""));
  }
  add(Kind::kMetadata, R"("ph":"M","cat":"kernel")");
  add(Kind::kOther, R"("name":"ProfilerStep#1")");
  add(Kind::kKernel, R"("pid":"CUDA functions","name":"ProfilerStep#1")");
  add(Kind::kAnnotation, R"("pid":"CPU functions","name":"ProfilerStep#1")");
  add(Kind::kOp, R"("pid":"CPU functions","name":"add")");
  ReadEvents(*ByteSource::OfText(text + "]"), {[&](const Event& event) { kinds.push_back(event.kind); }});
  EXPECT_EQ(kinds, expected);
}

TEST(ReadEvents, IdsAreDecimalOrHexadecimal) {
  std::vector<int64_t> ids;
  ReadEvents(
      *ByteSource::OfText(
          R"([{"id":7},{"id":"0xabcdef0123456789"},{"id":1e3},{"id":-1e30},{"id":""},{"id":"0x"},{"id":"x"}])"),
      {[&](const Event& event) { ids.push_back(event.flow_id); }});
  EXPECT_THAT(ids, ElementsAre(7, static_cast<int64_t>(0xabcdef0123456789), 1000, kNoNumber, kNoNumber,
                               kNoNumber, kNoNumber));
}

TEST(ParseMicroseconds, IsExactToTheNanosecond) {
  EXPECT_EQ(ParseMicroseconds("1428625731896.179"), 1428625731896179);
  EXPECT_EQ(ParseMicroseconds("-1.5"), -1500);
  EXPECT_EQ(ParseMicroseconds("0.0005"), 0);
  EXPECT_EQ(ParseMicroseconds("1.7e6"), 1'700'000'000);
  EXPECT_EQ(ParseMicroseconds("1751410836000000000"), kNoNumber);
  EXPECT_EQ(ParseMicroseconds("-4611686018427387.904"), -(int64_t{1} << 62));
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto whole = static_cast<int64_t>(random() >> (random() % 40 + 14)),
               decimals = static_cast<int64_t>(random() % 1000000);
    const std::string text = absl::StrFormat("%s%d.%06d", i % 2 == 0 ? "" : "-", whole, decimals);
    EXPECT_EQ(ParseMicroseconds(text), (i % 2 == 0 ? 1 : -1) * (1000 * whole + decimals / 1000)) << text;
  }
  for (const char* none :
       {"", "-", "NaN", "Infinity", "1x", "1e400", "1e300", "-1e300", "-4611686018427387.905"})
    EXPECT_EQ(ParseMicroseconds(none), kNoNumber) << none;
}

}  // namespace
}  // namespace ott::chrome_trace
