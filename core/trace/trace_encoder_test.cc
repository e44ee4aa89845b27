#include "ott/core/trace/trace_encoder.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/trace/perfetto_for_test.pb.h"

namespace ott {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TraceEvent Slice(std::string_view name, int64_t start, int64_t duration) {
  TraceEvent event;
  event.process = 3;
  event.track = 42;
  event.name = name;
  event.category = "stopwatch";
  event.start = start;
  event.duration = duration;
  return event;
}

// A line an event, parsed by protobuf's JSON parser, which accepts nothing but JSON.
google::protobuf::Struct ParseLine(std::string_view line) {
  google::protobuf::Struct result;
  const absl::Status status = JsonToProto(line, &result);
  EXPECT_TRUE(status.ok()) << status << " in " << line;
  return result;
}

class ChromeTraceEncoderTest : public ::testing::Test {
 protected:
  std::string Encode(const TraceEvent& event) {
    const std::unique_ptr<TraceEncoder> encoder = NewChromeTraceEncoder();
    std::string out;
    encoder->Add(event, out);
    return out.substr(1);
  }
};

TEST_F(ChromeTraceEncoderTest, AWholeTraceIsJsonAndOneWithoutEvents) {
  std::unique_ptr<TraceEncoder> encoder = NewChromeTraceEncoder();
  std::string out;
  encoder->Begin("{}", out);
  encoder->End(out);
  ParseLine(out);
  encoder = NewChromeTraceEncoder();
  out.clear();
  encoder->Begin(R"({"rank":3})", out);
  encoder->Add(TraceProcess{3, "rank 3", "clock +1 us", 3}, out);
  encoder->Add(TraceTrack{3, 42, "main", 0}, out);
  encoder->Add(Slice("forward", 1'234'567, 89), out);
  encoder->End(out);
  EXPECT_EQ(out, R"({"displayTimeUnit":"ns","otherData":{"rank":3},"traceEvents":[
{"ph":"M","name":"process_name","pid":3,"args":{"name":"rank 3"}},
{"ph":"M","name":"process_labels","pid":3,"args":{"labels":"clock +1 us"}},
{"ph":"M","name":"process_sort_index","pid":3,"args":{"sort_index":3}},
{"ph":"M","name":"thread_name","pid":3,"tid":42,"args":{"name":"main"}},
{"ph":"M","name":"thread_sort_index","pid":3,"tid":42,"args":{"sort_index":0}},
{"ph":"X","name":"forward","cat":"stopwatch","pid":3,"tid":42,"ts":1234.567,"dur":0.089}
]}
)");
  ParseLine(out);
}

TEST_F(ChromeTraceEncoderTest, TimesBeforeTheBeginningAreNegative) {
  EXPECT_THAT(Encode(Slice("a", -1, 0)), HasSubstr(R"("ts":-0.001,"dur":0.000)"));
  EXPECT_THAT(Encode(Slice("a", -12'345, 0)), HasSubstr(R"("ts":-12.345)"));
  EXPECT_THAT(Encode(Slice("a", std::numeric_limits<int64_t>::min(), 0)),
              HasSubstr(R"("ts":-9223372036854775.808)"));
}

TEST_F(ChromeTraceEncoderTest, NamesMayHaveAnyBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  ParseLine(Encode(Slice(all, 0, 1)));
  const auto parsed = ParseLine(Encode(Slice("a\"\\\n\x01\x80\xE2\x82\xAC", 0, 1)));
  EXPECT_EQ(parsed.fields().at("name").string_value(), "a\"\\\n\x01\xEF\xBF\xBD\xE2\x82\xAC");
}

TEST_F(ChromeTraceEncoderTest, OverlappingSlicesAreAsynchronousPairs) {
  TraceEvent event = Slice("a", 1000, 500);
  event.type = TraceEvent::Type::kOverlappingSlice;
  event.args = R"({"x":1})";
  EXPECT_EQ(Encode(event),
            R"({"ph":"b","name":"a","cat":"stopwatch","pid":3,"tid":42,"ts":1.000,"id":"0x1","args":{"x":1}},
{"ph":"e","name":"a","cat":"stopwatch","pid":3,"tid":42,"ts":1.500,"id":"0x1"})");
}

TEST_F(ChromeTraceEncoderTest, FlowsFollowTheirSlice) {
  TraceEvent event = Slice("linear", 1000, 500);
  event.flow = TraceEvent::Flow::kStart;
  event.flow_id = 255;
  EXPECT_THAT(Encode(event),
              HasSubstr(R"({"ph":"s","name":"flow in process 3","cat":"flow","pid":3,"tid":42,)"
                        R"("ts":1.000,"id":"0xff"})"));
  event.flow = TraceEvent::Flow::kFinish;
  EXPECT_THAT(Encode(event), HasSubstr(R"("ts":1.000,"id":"0xff","bp":"e"})"));
}

TEST_F(ChromeTraceEncoderTest, CountersThatAreNotFiniteAreMarks) {
  TraceEvent event = Slice("loss", 1000, 0);
  event.type = TraceEvent::Type::kCounter;
  event.value = 0.1;
  EXPECT_THAT(Encode(event), HasSubstr(R"("ph":"C","name":"loss")"));
  EXPECT_THAT(Encode(event), HasSubstr(R"("args":{"value":0.1}})"));
  event.value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Encode(event), HasSubstr(R"("ph":"i","name":"loss = nan")"));
  event.value = -std::numeric_limits<double>::infinity();
  EXPECT_THAT(Encode(event), HasSubstr(R"("ph":"i","name":"loss = -inf")"));
}

class PerfettoEncoderTest : public ::testing::Test {
 protected:
  PerfettoEncoderTest() { encoder_->Begin("{}", out_); }

  PerfettoTraceForTest Decode() {
    encoder_->End(out_);
    PerfettoTraceForTest trace;
    EXPECT_TRUE(trace.ParseFromString(out_));
    EXPECT_FALSE(HasUnknownFields(trace));
    return trace;
  }

  // "begin NAME@TIME" and so on, of the events on tracks.
  std::vector<std::string> Events() {
    std::vector<std::string> result;
    const PerfettoTraceForTest trace = Decode();
    for (const auto& packet : trace.packet()) {
      if (!packet.has_track_event() || packet.track_event().name() == "trace info") continue;
      static constexpr const char* kTypes[] = {"", "begin", "end", "instant", "counter"};
      const auto& event = packet.track_event();
      result.push_back(std::string(kTypes[event.type()]) + (event.name().empty() ? "" : " ") + event.name() +
                       "@" + std::to_string(packet.timestamp()));
    }
    return result;
  }

  static bool HasUnknownFields(const PerfettoTraceForTest& trace) {
    for (const auto& packet : trace.packet()) {
      const auto has = [](const google::protobuf::Message& message) {
        return !message.GetReflection()->GetUnknownFields(message).empty();
      };
      if (has(packet) || has(packet.track_event()) || has(packet.track_descriptor()) ||
          has(packet.track_descriptor().process())) {
        return true;
      }
    }
    return false;
  }

  const std::unique_ptr<TraceEncoder> encoder_ = NewPerfettoEncoder();
  std::string out_;
};

TEST_F(PerfettoEncoderTest, SlicesBeginAndEndNested) {
  encoder_->Add(Slice("outer", 10, 20), out_);
  encoder_->Add(Slice("same start", 10, 5), out_);
  encoder_->Add(Slice("empty", 15, 0), out_);
  encoder_->Add(Slice("next", 30, 5), out_);
  EXPECT_THAT(Events(), ElementsAre("begin outer@10", "begin same start@10", "end@15", "begin empty@15",
                                    "end@15", "end@30", "begin next@30", "end@35"));
}

TEST_F(PerfettoEncoderTest, OverlappingSlicesOfANameHaveTracksOfTheirOwn) {
  for (const int64_t start : {10, 15, 20, 40}) {
    TraceEvent event = Slice("a", start, 10);
    event.type = TraceEvent::Type::kOverlappingSlice;
    encoder_->Add(event, out_);
  }
  std::vector<uint64_t> tracks;
  const PerfettoTraceForTest trace = Decode();
  for (const auto& packet : trace.packet()) {
    if (packet.track_event().type() == 1) tracks.push_back(packet.track_event().track_uuid());
  }
  ASSERT_EQ(tracks.size(), 4);
  EXPECT_NE(tracks[0], tracks[1]);
  EXPECT_EQ(tracks[0], tracks[2]);
  EXPECT_EQ(tracks[0], tracks[3]);
}

TEST_F(PerfettoEncoderTest, ProcessesAndTracksAreNamedAndOrdered) {
  encoder_->Add(TraceProcess{3, "rank 3", "clock +1 us", 3}, out_);
  encoder_->Add(TraceTrack{3, 42, "main", 7}, out_);
  encoder_->Add(Slice("a", 0, 1), out_);
  const PerfettoTraceForTest trace = Decode();
  EXPECT_TRUE(trace.packet(0).track_descriptor().has_uuid());
  EXPECT_EQ(trace.packet(0).track_descriptor().uuid(), 0);
  EXPECT_EQ(trace.packet(0).track_descriptor().process_ordering(), 1);
  const auto& process = trace.packet(3).track_descriptor();
  EXPECT_EQ(process.process().process_name(), "rank 3");
  EXPECT_EQ(process.process().process_labels(0), "clock +1 us");
  EXPECT_EQ(process.sibling_order_rank(), 3);
  const auto& track = trace.packet(4).track_descriptor();
  EXPECT_EQ(track.name(), "main");
  EXPECT_EQ(track.parent_uuid(), process.uuid());
  EXPECT_EQ(track.sibling_order_rank(), 7);
  EXPECT_EQ(trace.packet(5).track_event().track_uuid(), track.uuid());
}

TEST_F(PerfettoEncoderTest, CountersHaveATrackAndAnyValue) {
  TraceEvent event = Slice("loss", 5, 0);
  event.type = TraceEvent::Type::kCounter;
  for (const double value : {0.25, std::numeric_limits<double>::infinity()}) {
    event.value = value;
    encoder_->Add(event, out_);
  }
  const PerfettoTraceForTest trace = Decode();
  ASSERT_EQ(trace.packet_size(), 6);
  EXPECT_TRUE(trace.packet(3).track_descriptor().has_counter());
  EXPECT_EQ(trace.packet(4).track_event().track_uuid(), trace.packet(3).track_descriptor().uuid());
  EXPECT_EQ(trace.packet(4).track_event().double_counter_value(), 0.25);
  EXPECT_TRUE(std::isinf(trace.packet(5).track_event().double_counter_value()));
}

TEST_F(PerfettoEncoderTest, FlowsAreAtTheBeginningsOfTheirSlices) {
  TraceEvent event = Slice("linear", 5, 1);
  event.flow = TraceEvent::Flow::kStart;
  event.flow_id = 12;
  event.args = R"({"op":"linear"})";
  encoder_->Add(event, out_);
  event.start = 10;
  event.flow = TraceEvent::Flow::kFinish;
  encoder_->Add(event, out_);
  const PerfettoTraceForTest trace = Decode();
  ASSERT_EQ(trace.packet_size(), 7);
  const auto& begin = trace.packet(3).track_event();
  ASSERT_EQ(begin.flow_ids_size(), 1);
  EXPECT_EQ(begin.debug_annotations(0).legacy_json_value(), R"({"op":"linear"})");
  ASSERT_EQ(trace.packet(5).track_event().terminating_flow_ids_size(), 1);
  EXPECT_EQ(trace.packet(5).track_event().terminating_flow_ids(0), begin.flow_ids(0));
}

TEST_F(PerfettoEncoderTest, NamesMayHaveAnyBytes) {
  encoder_->Add(Slice(std::string("\xFF\0\"", 3), 5, 1), out_);
  EXPECT_EQ(Decode().packet(3).track_event().name(), std::string("\xEF\xBF\xBD\0\"", 5));
}

}  // namespace
}  // namespace ott
