#include "ott/questions/hang/torch_dumps.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"
#include "ott/core/pickle/pickle.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::hang {
namespace {

using Direction = JobOperation::Direction;
using Progress = JobOperation::Progress;
using Type = PlainData::Type;
using Value = PlainData::Value;

// Deeper nesting than the format has.
constexpr int kMaxJsonDepth = 32;

PlainData::Index AddJson(const google::protobuf::Value& json, int depth, PlainData* data) {
  const PlainData::Index index = data->Add(Type::kNone);
  switch (json.kind_case()) {
    case google::protobuf::Value::kBoolValue:
      (*data)[index].type = Type::kBool;
      (*data)[index].integer = json.bool_value();
      break;
    case google::protobuf::Value::kNumberValue:
      (*data)[index].type = Type::kReal;
      (*data)[index].real = json.number_value();
      break;
    case google::protobuf::Value::kStringValue:
      (*data)[index].type = Type::kText;
      (*data)[index].text = data->Keep(json.string_value());
      break;
    case google::protobuf::Value::kListValue:
      (*data)[index].type = Type::kList;
      for (const google::protobuf::Value& item : json.list_value().values()) {
        if (depth == 0) break;
        const PlainData::Index added = AddJson(item, depth - 1, data);
        (*data)[index].items.push_back(added);
      }
      break;
    case google::protobuf::Value::kStructValue:
      (*data)[index].type = Type::kMap;
      for (const auto& [name, member] : json.struct_value().fields()) {
        if (depth == 0) break;
        const PlainData::Index key = data->Add(Type::kText);
        (*data)[key].text = data->Keep(name);
        const PlainData::Index added = AddJson(member, depth - 1, data);
        (*data)[index].items.push_back(key);
        (*data)[index].items.push_back(added);
      }
      break;
    default:
      break;
  }
  return index;
}

// "[0, 1, 2]", or a list of numbers. Empty if it is something else.
std::vector<int> ParseRanks(const PlainData& data, const Value* value) {
  std::vector<int> ranks;
  const auto add = [&](int64_t rank) {
    if (rank >= 0 && rank < kMaxWorldSize) ranks.push_back(static_cast<int>(rank));
  };
  if (value != nullptr && value->type == Type::kList) {
    for (const PlainData::Index item : value->items) add(IntegerOr(&data[item], -1));
  }
  int64_t number = -1;
  for (const char c : TextOf(value)) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      number = std::min<int64_t>((number < 0 ? 0 : number) * 10 + (c - '0'), kMaxWorldSize);
    } else {
      add(number);
      number = -1;
    }
  }
  add(number);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

// The name of an operation or of a group. A pickle's text that is no UTF-8 is bytes.
std::string NameOf(const Value* value) {
  return value != nullptr && value->type == Type::kBytes ? ValidUtf8(value->text)
                                                         : std::string(TextOf(value));
}

// In elements; -1 if it is not known.
int64_t NumElements(const PlainData& data, const Value* sizes) {
  if (sizes == nullptr || sizes->type != Type::kList || sizes->items.size() != 1) return -1;
  const Value& dimensions = data[sizes->items[0]];
  if (dimensions.type != Type::kList) return -1;
  int64_t elements = 1;
  for (const PlainData::Index dimension : dimensions.items) {
    if (__builtin_mul_overflow(elements, IntegerOr(&data[dimension], 0), &elements)) return -1;
  }
  return elements;
}

// Operations that want inputs of one size on all ranks.
bool WantsEqualSizes(std::string_view name) {
  return name == "all_reduce" || name == "broadcast" || name == "reduce" || name == "_all_gather_base" ||
         name == "_reduce_scatter_base";
}

// Operations that no rank completes before all have begun them.
bool Synchronizes(std::string_view name) {
  for (const std::string_view part :
       {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// "send 0->3", "recv 0<-3": the second number.
int64_t PeerOf(std::string_view name) {
  const size_t arrow = name.find_first_of("<>");
  if (arrow == std::string_view::npos) return -1;
  const size_t digits = name.find_first_of("0123456789", arrow);
  int64_t peer;
  if (digits == std::string_view::npos ||
      !absl::SimpleAtoi(absl::string_view(name.data() + digits, name.size() - digits), &peer)) {
    return -1;
  }
  return peer;
}

// An operation before it is known which group is meant.
struct Entry {
  JobOperation operation;
  std::string group;
  int64_t process_group_id = -1;
  int64_t record_id = 0;
  int64_t point_to_point_sequence = 0;
  int64_t peer_in_group = -1;
  bool is_point_to_point = false;
  bool is_gloo = false;
  bool is_retired = false;
};

struct Status {
  int64_t enqueued = 0;
  int64_t completed = 0;
};

// The content of one dump.
struct Dump {
  std::map<std::string, std::pair<std::string, std::vector<int>>> groups;  // description and ranks by name
  std::map<int64_t, Status> status;  // by the rank's own number of a group
  std::vector<Entry> entries;        // as the rank called them
  bool records_entry = false;
};

class DumpReader {
 public:
  DumpReader(const PlainData& data, JobState* job, Dump* dump) : data_(data), job_(*job), dump_(*dump) {}

  absl::Status Read(const Value& root) {
    if (root.type != Type::kMap || data_.Find(root, "entries") == nullptr ||
        data_.Find(root, "entries")->type != Type::kList) {
      return absl::InvalidArgumentError("no Flight Recorder dump: it has no list \"entries\"");
    }
    const std::string_view version = TextOf(data_.Find(root, "version"));
    if (version.substr(0, 2) != "2.") {
      return absl::InvalidArgumentError(absl::StrCat("Flight Recorder dump of version \"",
                                                     std::string(version), "\"; versions 2.x are known"));
    }
    ReadGroups(data_.Find(root, "pg_config"));
    ReadStatus(data_.Find(root, "pg_status"));
    for (const PlainData::Index index : data_.Find(root, "entries")->items) ReadEntry(data_[index]);
    std::stable_sort(dump_.entries.begin(), dump_.entries.end(),
                     [](const Entry& a, const Entry& b) { return a.record_id < b.record_id; });
    return absl::OkStatus();
  }

 private:
  void ReadGroups(const Value* groups) {
    if (groups == nullptr || groups->type != Type::kMap) return;
    for (size_t i = 0; i + 1 < groups->items.size(); i += 2) {
      const Value& group = data_[groups->items[i + 1]];
      dump_.groups[NameOf(&data_[groups->items[i]])] = {NameOf(data_.Find(group, "desc")),
                                                        ParseRanks(data_, data_.Find(group, "ranks"))};
    }
  }

  void ReadStatus(const Value* groups) {
    if (groups == nullptr || groups->type != Type::kMap) return;
    for (size_t i = 0; i + 1 < groups->items.size(); i += 2) {
      const Value& status = data_[groups->items[i + 1]];
      dump_.status[IntegerOr(&data_[groups->items[i]], -1)] = {
          std::max<int64_t>(0, IntegerOr(data_.Find(status, "last_enqueued_collective"), 0)),
          std::max<int64_t>(0, IntegerOr(data_.Find(status, "last_completed_collective"), 0))};
      if (IntegerOr(data_.Find(status, "last_started_collective"), -1) > 0) dump_.records_entry = true;
    }
  }

  void ReadEntry(const Value& value) {
    if (value.type != Type::kMap) return;
    Entry entry;
    if (const Value* const group = data_.Find(value, "process_group");
        group != nullptr && group->type == Type::kList && !group->items.empty()) {
      entry.group = NameOf(&data_[group->items[0]]);
    }
    entry.process_group_id = IntegerOr(data_.Find(value, "pg_id"), -1);
    entry.record_id = IntegerOr(data_.Find(value, "record_id"), 0);
    const std::string profiling_name = NameOf(data_.Find(value, "profiling_name"));
    std::string_view name = profiling_name;
    entry.is_gloo = name.substr(0, 5) == "gloo:";
    name = name.substr(name.find(':') == std::string_view::npos ? 0 : name.find(':') + 1);
    entry.is_point_to_point = IntegerOr(data_.Find(value, "is_p2p"), 0) != 0;
    if (name.substr(0, 4) == "send" || name.substr(0, 4) == "recv") {
      entry.is_point_to_point = true;
      entry.peer_in_group = PeerOf(name);
    }
    entry.is_retired = IntegerOr(data_.Find(value, "retired"), 0) != 0;
    JobOperation& operation = entry.operation;
    operation.name = job_.Name(name);
    operation.synchronizes = Synchronizes(name);
    // Version 2.0 counts both kinds together.
    operation.sequence = std::max<int64_t>(
        0, IntegerOr(data_.Find(value, "collective_seq_id"), IntegerOr(data_.Find(value, "seq_id"), 0)));
    entry.point_to_point_sequence =
        std::max<int64_t>(0, IntegerOr(data_.Find(value, "p2p_seq_id"), operation.sequence));
    if (entry.is_point_to_point) {
      operation.direction = name.substr(0, 4) == "recv" ? Direction::kReceive : Direction::kSend;
    } else if (WantsEqualSizes(name)) {
      operation.size = NumElements(data_, data_.Find(value, "input_sizes"));
    }
    const std::string_view state = TextOf(data_.Find(value, "state"));
    operation.progress = state == "completed" ? Progress::kCompleted
                         : state == "started" ? Progress::kEntered
                                              : Progress::kEnqueued;
    if (operation.progress == Progress::kEntered ||
        IntegerOr(data_.Find(value, "time_discovered_started_ns"), 0) > 0) {
      dump_.records_entry = true;
    }
    dump_.entries.push_back(std::move(entry));
  }

  const PlainData& data_;
  JobState& job_;
  Dump& dump_;
};

absl::StatusOr<Dump> ReadDump(const PlainData& data, PlainData::Index root, JobState* job) {
  Dump dump;
  OTT_RETURN_IF_ERROR(DumpReader(data, job, &dump).Read(data[root]));
  return dump;
}

absl::StatusOr<Dump> ParseDump(std::string_view bytes, JobState* job) {
  if (bytes.empty()) return absl::DataLossError("empty; was the job killed while it wrote?");
  if (bytes[0] == '{') {
    PlainData::Index root = 0;
    OTT_ASSIGN_OR_RETURN(const PlainData data, ParseJsonData(bytes, &root));
    return ReadDump(data, root, job);
  }
  OTT_ASSIGN_OR_RETURN(const Pickle pickle, ParsePickle(bytes));
  return ReadDump(pickle.data, pickle.root, job);
}

// Puts what the dumps say together.
class JobBuilder {
 public:
  JobBuilder(std::map<int, Dump> dumps, JobState* job) : dumps_(std::move(dumps)), job_(*job) {}

  void Build() {
    for (const auto& [rank, dump] : dumps_) {
      job_.records_entry = job_.records_entry || dump.records_entry;
      for (const Entry& entry : dump.entries) job_.is_of_gloo = job_.is_of_gloo || entry.is_gloo;
    }
    FindGroups();
    for (auto& [rank, dump] : dumps_) {
      for (Entry& entry : dump.entries) entry.operation.group = GroupOf(rank, entry.group);
    }
    FindNumbersOfGroups();
    for (auto& [rank, dump] : dumps_) AddRank(rank, dump);
  }

 private:
  // Groups of one name may be several: each rank knows those that it is in.
  void FindGroups() {
    std::map<std::string, std::set<int>> without_config;
    int world_size = 0;
    RankState without_dump;
    without_dump.problem = "it left no dump";
    for (const auto& [rank, dump] : dumps_) {
      for (const auto& [name, config] : dump.groups) {
        if (config.second.empty()) continue;
        world_size = std::max(world_size, config.second.back() + 1);
        AddGroup(rank, name, config.first, config.second);
      }
      for (const Entry& entry : dump.entries) {
        if (group_of_.count({rank, entry.group}) == 0) without_config[entry.group].insert(rank);
      }
    }
    for (const auto& [name, ranks] : without_config) {
      for (const int rank : ranks) AddGroup(rank, name, "", {ranks.begin(), ranks.end()});
    }
    job_.ranks.resize(std::max<size_t>(job_.ranks.size(), world_size), without_dump);
  }

  void AddGroup(int rank, const std::string& name, const std::string& description, std::vector<int> ranks) {
    const auto [found, is_new] = groups_.emplace(std::make_pair(name, ranks), job_.groups.size());
    if (is_new) {
      job_.groups.push_back({description.empty() || description == "undefined"
                                 ? name
                                 : absl::StrCat(name, " (", description, ")"),
                             std::move(ranks)});
      has_point_to_point_.push_back(false);
    }
    group_of_[{rank, name}] = static_cast<int32_t>(found->second);
  }

  int32_t GroupOf(int rank, const std::string& name) const { return group_of_.at({rank, name}); }

  // The status of groups is by a number of the rank's own. Entries tell which group that is; for groups of
  // which a rank has none, so do the entries of its other members, where they agree.
  void FindNumbersOfGroups() {
    std::map<int32_t, std::set<int64_t>> numbers;
    std::set<std::pair<int, int64_t>> taken;
    for (const auto& [rank, dump] : dumps_) {
      for (const Entry& entry : dump.entries) {
        numbers[entry.operation.group].insert(entry.process_group_id);
        taken.emplace(rank, entry.process_group_id);
        number_of_[{rank, entry.operation.group}] = entry.process_group_id;
        if (entry.is_point_to_point) has_point_to_point_[entry.operation.group] = true;
      }
    }
    for (const auto& [group, found] : numbers) {
      if (found.size() != 1) continue;
      for (const int rank : job_.groups[group].ranks) {
        if (taken.count({rank, *found.begin()}) == 0)
          number_of_.emplace(std::make_pair(rank, group), *found.begin());
      }
    }
  }

  void AddRank(int rank, const Dump& dump) {
    RankState& state = job_.ranks[rank];
    state.problem.clear();
    std::map<int32_t, GroupPosition> positions;
    for (auto of = number_of_.lower_bound({rank, 0}); of != number_of_.end() && of->first.first == rank;
         ++of) {
      AddStatus(of->first.second, of->second, dump, &positions);
    }
    const Entry* head = nullptr;
    for (const Entry& entry : dump.entries) {
      JobOperation operation = entry.operation;
      // Gloo's entries stay "scheduled" after their operations completed. The status may lag, as several
      // threads write it.
      const auto position = positions.find(operation.group);
      const bool is_counted = position != positions.end() && operation.sequence <= position->second.completed;
      if (entry.is_gloo && (entry.is_retired || is_counted)) operation.progress = Progress::kCompleted;
      if (entry.is_point_to_point) {
        const std::vector<int>& members = job_.groups[operation.group].ranks;
        if (entry.peer_in_group < 0 || entry.peer_in_group >= static_cast<int64_t>(members.size())) continue;
        operation.peer = members[entry.peer_in_group];
        operation.sequence = entry.point_to_point_sequence;
      }
      if (operation.progress == Progress::kCompleted) {
        state.last_completed = absl::StrCat(job_.names[operation.name], " #", operation.sequence,
                                            " of group ", job_.groups[operation.group].name);
      } else if (!job_.records_entry) {
        // Counts as entered what a rank called first, and what it called together with that.
        if (head == nullptr) head = &entry;
        const bool together = entry.is_point_to_point && head->is_point_to_point &&
                              entry.operation.group == head->operation.group &&
                              entry.point_to_point_sequence == head->point_to_point_sequence;
        if (head == &entry || together) operation.progress = Progress::kEntered;
      }
      if (!entry.is_point_to_point) Raise(operation, &positions);
      state.operations.push_back(operation);
    }
    for (const auto& [group, position] : positions) state.positions.push_back(position);
    if (state.operations.empty() && state.positions.empty()) state.problem = "its dump holds no operation";
  }

  void AddStatus(int32_t group, int64_t number, const Dump& dump,
                 std::map<int32_t, GroupPosition>* positions) {
    // If a group has collectives and messages of two ranks, the status counts now the one, now the other.
    if (has_point_to_point_[group]) return;
    const auto status = dump.status.find(number);
    if (status == dump.status.end()) return;
    GroupPosition& position = (*positions)[group];
    position.group = group;
    position.enqueued = status->second.enqueued;
    position.entered = position.completed = status->second.completed;
  }

  static void Raise(const JobOperation& operation, std::map<int32_t, GroupPosition>* positions) {
    const auto [found, is_new] = positions->emplace(operation.group, GroupPosition());
    GroupPosition& position = found->second;
    position.group = operation.group;
    position.enqueued = std::max(position.enqueued, operation.sequence);
    // Operations complete in order.
    const int64_t before = operation.sequence - 1;
    if (is_new && operation.progress != Progress::kCompleted) position.entered = position.completed = before;
    if (operation.progress != Progress::kEnqueued)
      position.entered = std::max(position.entered, operation.sequence);
    if (operation.progress == Progress::kCompleted) {
      position.completed = std::max(position.completed, operation.sequence);
    }
  }

  std::map<int, Dump> dumps_;
  JobState& job_;
  std::map<std::pair<std::string, std::vector<int>>, size_t> groups_;
  std::map<std::pair<int, std::string>, int32_t> group_of_;
  std::map<std::pair<int, int32_t>, int64_t> number_of_;
  std::vector<bool> has_point_to_point_;
};

// The name without its number and extension, and the number.
std::optional<std::pair<std::string, int>> SplitName(const std::string& name) {
  std::string stem = name;
  for (const char* const extension : {".json", ".pickle", ".pkl"}) {
    const std::string_view ending(extension);
    if (stem.size() > ending.size() &&
        stem.compare(stem.size() - ending.size(), ending.size(), ending) == 0) {
      stem.resize(stem.size() - ending.size());
      break;
    }
  }
  const size_t end = stem.find_last_not_of("0123456789") + 1;
  int rank;
  if (end == stem.size() || !absl::SimpleAtoi(stem.substr(end), &rank) || rank >= kMaxWorldSize)
    return std::nullopt;
  return std::make_pair(stem.substr(0, end), rank);
}

absl::StatusOr<std::string> ReadDump(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(error ? error.message() : "no regular file");
  }
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (size > static_cast<uintmax_t>(kMaxDumpBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(size, " bytes, and a dump has at most ", kMaxDumpBytes));
  }
  return ReadFile(path.string());
}

}  // namespace

absl::StatusOr<PlainData> ParseJsonData(std::string_view text, PlainData::Index* root) {
  google::protobuf::Value json;
  OTT_RETURN_IF_ERROR(JsonToProto(text, &json));
  PlainData data;
  *root = AddJson(json, kMaxJsonDepth, &data);
  return data;
}

absl::StatusOr<JobState> ParseTorchDumps(const std::map<int, std::string>& dumps) {
  JobState job;
  job.records_entry = false;
  std::map<int, Dump> parsed;
  absl::Status first_error;
  for (const auto& [rank, bytes] : dumps) {
    while (rank >= static_cast<int>(job.ranks.size())) {
      job.ranks.emplace_back();
      job.ranks.back().problem = "it left no dump";
    }
    absl::StatusOr<Dump> dump = ParseDump(bytes, &job);
    if (dump.ok()) {
      parsed.emplace(rank, *std::move(dump));
    } else {
      job.ranks[rank].problem = ValidUtf8(std::string(dump.status().message()));
      if (first_error.ok()) first_error = dump.status();
    }
  }
  if (parsed.empty() && !first_error.ok()) return first_error;
  JobBuilder(std::move(parsed), &job).Build();
  return job;
}

absl::StatusOr<JobState> ReadTorchDumps(const std::string& dir) {
  std::map<std::string, std::map<int, std::filesystem::path>> by_stem;
  std::error_code error;
  std::filesystem::directory_iterator files(dir, error);
  if (error) return absl::NotFoundError(absl::StrCat(dir, ": ", error.message()));
  for (; files != std::filesystem::directory_iterator(); files.increment(error)) {
    if (error) return absl::UnavailableError(absl::StrCat(dir, ": ", error.message()));
    if (const auto split = SplitName(files->path().filename().string()); split.has_value()) {
      by_stem[split->first].emplace(split->second, files->path());
    }
  }
  const auto most = std::max_element(by_stem.begin(), by_stem.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  if (most == by_stem.end()) {
    return absl::NotFoundError(absl::StrCat(
        dir,
        ": neither a run directory nor dumps of PyTorch's Flight Recorder, such as nccl_trace_rank_0; "
        "TORCH_NCCL_DUMP_ON_TIMEOUT=1, TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and "
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=DIR/nccl_trace_rank_ make PyTorch leave them"));
  }
  std::map<int, std::string> dumps;
  std::map<int, std::string> problems;
  for (const auto& [rank, path] : most->second) {
    absl::StatusOr<std::string> bytes = ReadDump(path);
    if (!bytes.ok()) problems[rank] = std::string(bytes.status().message());
    dumps[rank] = bytes.ok() ? *std::move(bytes) : std::string();
  }
  absl::StatusOr<JobState> job = ParseTorchDumps(dumps);
  if (!job.ok()) {
    const auto& [rank, path] = *most->second.begin();
    return absl::Status(
        job.status().code(),
        absl::StrCat(path.string(), ": ",
                     problems.count(rank) > 0 ? problems[rank] : std::string(job.status().message())));
  }
  for (const auto& [rank, path] : most->second) {
    std::string& problem = job->ranks[rank].problem;
    if (problem.empty()) continue;
    if (problems.count(rank) > 0) problem = problems[rank];
    problem = ValidUtf8(absl::StrCat(path.filename().string(), ": ", problem));
  }
  for (const auto& [stem, paths] : by_stem) {
    if (stem != most->first) job->notes.push_back(absl::StrCat("files ", ValidUtf8(stem), "N are ignored"));
  }
  return job;
}

}  // namespace ott::hang
