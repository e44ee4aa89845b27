// Dumps as PyTorch's Flight Recorder writes them.

#ifndef OTT_QUESTIONS_HANG_DUMP_FOR_TEST_H_
#define OTT_QUESTIONS_HANG_DUMP_FOR_TEST_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/pickle/plain_data.h"

namespace ott::hang {

// The JSON of one rank's dump: of the default group of four ranks, which did nothing, and of a group of the
// same ranks with whatever entries.
class DumpForTest {
 public:
  DumpForTest& Enqueued(int64_t sequence) {
    enqueued_ = sequence;
    return *this;
  }
  DumpForTest& Completed(int64_t sequence) {
    completed_ = sequence;
    return *this;
  }
  DumpForTest& Started(int64_t sequence) {
    started_ = sequence;
    return *this;
  }

  DumpForTest& Entry(int64_t sequence, const std::string& name, const std::string& state, int size = 8) {
    Add(sequence, 0, name, state, size, false);
    enqueued_ = std::max(enqueued_, sequence);
    return *this;
  }

  DumpForTest& PointToPoint(int64_t sequence, const std::string& name, const std::string& state) {
    Add(0, sequence, name, state, 8, true);
    return *this;
  }

  std::string Json() const {
    return absl::StrCat(
        R"({"version": "2.9", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}, )",
        R"("7": {"name": "7", "desc": "dp", "ranks": "[0, 1, 2, 3]"}}, )",
        R"("pg_status": {"0": {"last_enqueued_collective": -1, "last_started_collective": -1, )",
        R"("last_completed_collective": -1}, "5": {"last_enqueued_collective": )", enqueued_,
        R"(, "last_started_collective": )", started_, R"(, "last_completed_collective": )", completed_,
        "}}, \"entries\": [", entries_, "]}");
  }

  std::string Pickle() const {
    PlainData::Index root = 0;
    const PlainData data = *ParseJsonData(Json(), &root);
    std::string pickle = "\x80\x02";
    AppendPickle(data, root, &pickle);
    return pickle + ".";
  }

 private:
  void Add(int64_t sequence, int64_t point_to_point_sequence, const std::string& name,
           const std::string& state, int size, bool is_point_to_point) {
    absl::StrAppend(&entries_, entries_.empty() ? "" : ", ", R"({"record_id": )", next_record_++,
                    R"(, "pg_id": 5, "process_group": ["7", "dp"], "collective_seq_id": )", sequence,
                    R"(, "p2p_seq_id": )", point_to_point_sequence, R"(, "profiling_name": "nccl:)", name,
                    R"(", "input_sizes": [[)", size, R"(, 2]], "state": ")", state, R"(", "is_p2p": )",
                    is_point_to_point ? "true" : "false", "}");
  }

  static void AppendText(std::string_view text, std::string* pickle) {
    *pickle += 'X';
    for (int i = 0; i < 4; ++i) *pickle += static_cast<char>(text.size() >> (8 * i));
    *pickle += text;
  }

  static void AppendPickle(const PlainData& data, PlainData::Index index, std::string* pickle) {
    const PlainData::Value& value = data[index];
    switch (value.type) {
      case PlainData::Type::kBool:
        *pickle += value.integer != 0 ? '\x88' : '\x89';
        break;
      case PlainData::Type::kReal: {
        const auto number = static_cast<int64_t>(value.real);
        *pickle += "\x8a\x08";
        for (int i = 0; i < 8; ++i) *pickle += static_cast<char>(number >> (8 * i));
        break;
      }
      case PlainData::Type::kText:
        AppendText(value.text, pickle);
        break;
      case PlainData::Type::kList:
      case PlainData::Type::kMap:
        *pickle += value.type == PlainData::Type::kList ? "](" : "}(";
        for (const PlainData::Index item : value.items) AppendPickle(data, item, pickle);
        *pickle += value.type == PlainData::Type::kList ? 'e' : 'u';
        break;
      default:
        *pickle += 'N';
    }
  }

  std::string entries_;
  int64_t enqueued_ = 0;
  int64_t completed_ = 0;
  int64_t started_ = -1;
  int next_record_ = 1;
};

}  // namespace ott::hang

#endif  // OTT_QUESTIONS_HANG_DUMP_FOR_TEST_H_
