#include "ott/questions/saved/sampled_job.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/persistent_excess.h"
#include "questions/saved/block_pieces.h"

namespace ott::whatif {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr char kOutside[] = "outside all measurements";
// Ranks whose intervals overlap in fewer of the iterations did not wait for each other.
constexpr double kMinOverlap = 0.99;
// What disturbs an iteration often disturbs the next as well.
constexpr size_t kIterationsPerBatch = 5;
// Comparing all pairs of more ranks takes too long.
constexpr size_t kMaxRanksInPairs = 256;
// Of a rank's work: where others had its CPU for less of it, predictions hold.
constexpr double kTakenWorthANote = 0.1;

class Maker {
 public:
  explicit Maker(std::vector<IterationSample> samples) : samples_(std::move(samples)) {
    std::sort(samples_.begin(), samples_.end(),
              [](const IterationSample& a, const IterationSample& b) { return a.rank() < b.rank(); });
    job_.step_word = "iteration";
  }

  absl::StatusOr<Job> Make() {
    for (const IterationSample& sample : samples_) OTT_RETURN_IF_ERROR(CheckSample(sample));
    DescribeRanks();
    OTT_RETURN_IF_ERROR(CutBlocks());
    FindGroups();
    for (const Block& block : blocks_) AddBlock(block);
    if (job_.operations.empty()) {
      return absl::NotFoundError(
          "the iterations that were kept hold no work between collective measurements");
    }
    NameKinds();
    FindWorkSpread();
    OTT_RETURN_IF_ERROR(job_.graph.Finish([this](int32_t operation) { return job_.NameOf(operation); }));
    FindIdealTimes();
    return std::move(job_);
  }

 private:
  void FindWorkSpread() {
    std::optional<CpuShare> all;
    double least_taken = std::numeric_limits<double>::infinity();
    for (const IterationSample& sample : samples_) {
      if (!sample.has_cpu_of_work()) continue;
      const CpuOfWork& of_work = sample.cpu_of_work();
      const CpuShare cpu = {of_work.cpu_seconds(), of_work.taken_share(), of_work.watched_seconds(),
                            of_work.taken_seconds()};
      all = all ? LeastCertain(*all, cpu) : cpu;
      least_taken = std::min(least_taken, cpu.taken_seconds);
    }
    if (!all) return;
    job_.work_spread = std::hypot(ExpectedSpread(*all), SpreadOfTaken(*all));
    // What others took from a rank is no excess of its own.
    job_.work_slowdown = SecondsOfOneSlowdown(*all) + all->taken_seconds - least_taken;
    if (all->taken_share < kTakenWorthANote) return;
    job_.notes.push_back(absl::StrFormat(
        "overloaded machine: others had a rank's CPU for up to %.0f%% of its work; mending saves more than "
        "is predicted, as ranks also wait for a CPU in collectives, which stays here",
        100 * all->taken_share));
  }

  // The same iterations of all ranks, by rank.
  using Block = std::vector<std::vector<Piece>>;

  void DescribeRanks() {
    int world_size = 0;
    for (const IterationSample& sample : samples_) {
      job_.ranks.push_back({sample.rank(), -1, -1, sample.host()});
      world_size = std::max(world_size, sample.world_size());
      std::vector<int32_t>& names = names_of_rank_.emplace_back();
      for (int i = 0; i < sample.names_size(); ++i) {
        const auto [known, is_new] = index_.emplace(sample.names(i), static_cast<int32_t>(names_.size()));
        if (is_new) names_.push_back(sample.names(i));
        names.push_back(known->second);
        if (i == sample.observer()) observer_ = known->second;
      }
    }
    FindStages();
    if (static_cast<int>(samples_.size()) < world_size) {
      job_.incomplete = true;
      std::vector<std::string> missing;
      std::set<int> there;
      for (const IterationSample& sample : samples_) there.insert(sample.rank());
      constexpr size_t kMaxNamed = 8;
      for (int rank = 0; rank < world_size && missing.size() < kMaxNamed; ++rank) {
        if (there.count(rank) == 0) missing.push_back(absl::StrCat(rank));
      }
      job_.notes.push_back(absl::StrCat(world_size - static_cast<int>(samples_.size()), " of ", world_size,
                                        " ranks left no iterations: ", absl::StrJoin(missing, ", "),
                                        missing.size() == kMaxNamed ? ", ..." : ""));
    }
  }

  // Where not all ranks do like work, those that do are a stage of a pipeline, in the order of the lowest
  // ranks; replicas are the ranks' places in their stages, where these have as many.
  void FindStages() {
    std::map<std::string, int> stage_of_work;
    std::vector<int> sizes;
    for (const IterationSample& sample : samples_) {
      if (stage_of_work.emplace(sample.like_work(), static_cast<int>(sizes.size())).second)
        sizes.push_back(0);
    }
    if (sizes.size() < 2) return;
    for (size_t i = 0; i < samples_.size(); ++i) {
      job_.ranks[i].stage = stage_of_work[samples_[i].like_work()];
      job_.ranks[i].replica = sizes[job_.ranks[i].stage]++;
    }
    if (std::count(sizes.begin(), sizes.end(), sizes[0]) == static_cast<int64_t>(sizes.size())) return;
    for (Job::Rank& rank : job_.ranks) rank.replica = -1;
  }

  // Groups that the ranks tell.
  void TakeGroups() {
    std::map<std::string, int32_t> index;
    for (size_t rank = 0; rank < samples_.size(); ++rank) {
      for (int i = 0; i < std::min(samples_[rank].group_size(), samples_[rank].names_size()); ++i) {
        if (samples_[rank].group(i).empty()) continue;
        const auto known =
            index.emplace(samples_[rank].group(i), static_cast<int32_t>(index.size()) + 1).first;
        std::vector<int32_t>& group = group_of_rank_[names_of_rank_[rank][static_cast<size_t>(i)]];
        group.resize(samples_.size());
        group[rank] = known->second;
      }
    }
    // A group of all ranks is none.
    for (auto group = group_of_rank_.begin(); group != group_of_rank_.end();) {
      const std::vector<int32_t>& of_rank = group->second;
      const bool is_one =
          std::count(of_rank.begin(), of_rank.end(), of_rank[0]) == static_cast<int64_t>(of_rank.size());
      group = is_one ? group_of_rank_.erase(group) : std::next(group);
    }
  }

  absl::Status CutBlocks() {
    // By first iteration: which block of each rank.
    std::map<int64_t, std::vector<const IterationBlock*>> by_iteration;
    int64_t num_lost = 0;
    for (const IterationSample& sample : samples_) {
      num_lost = std::max(num_lost, sample.num_iterations_lost());
      for (const IterationBlock& block : sample.blocks()) {
        by_iteration[block.first_iteration()].push_back(&block);
        error_bound_ = std::max(error_bound_, block.error_bound());
      }
    }
    for (const auto& [unused, of_ranks] : by_iteration) {
      if (of_ranks.size() != samples_.size()) continue;
      Block& block = blocks_.emplace_back();
      for (size_t rank = 0; rank < samples_.size(); ++rank) {
        block.push_back(CutBlock(samples_[rank], *of_ranks[rank], names_of_rank_[rank]));
      }
    }
    if (num_lost > 0) {
      job_.notes.push_back(absl::StrCat(
          num_lost, " iterations that were to be kept had too many intervals, or were profiled"));
    }
    if (!blocks_.empty()) return absl::OkStatus();
    return absl::NotFoundError(
        "no iterations were kept by all ranks; it takes 16 iterations after warm-up until the first ones "
        "are");
  }

  // For each name, the groups of ranks that wait for each other in it: those that are told, and where ranks
  // of one leave before others of it come, those that overlap.
  void FindGroups() {
    TakeGroups();
    std::map<int32_t, std::map<std::pair<int64_t, int32_t>, std::vector<std::pair<size_t, const Piece*>>>>
        all;
    for (const Block& block : blocks_) {
      for (size_t rank = 0; rank < block.size(); ++rank) {
        for (const Piece& piece : block[rank]) {
          if (piece.ordinal >= 0) all[piece.name][{piece.iteration, piece.ordinal}].push_back({rank, &piece});
        }
      }
    }
    for (const auto& [name, occurrences] : all) {
      int64_t num_violated = 0;
      for (const auto& [unused, pieces] : occurrences) {
        struct Times {
          int64_t latest = std::numeric_limits<int64_t>::min();
          int64_t first_end = std::numeric_limits<int64_t>::max();
        };
        std::map<int32_t, Times> of_group;
        for (const auto& [rank, piece] : pieces) {
          Times& times = of_group[GroupOf(name, rank)];
          times.latest = std::max(times.latest, piece->start);
          times.first_end = std::min(times.first_end, piece->end);
        }
        num_violated += std::any_of(of_group.begin(), of_group.end(), [this](const auto& group) {
          return group.second.first_end + 2 * error_bound_ < group.second.latest;
        });
      }
      const auto count = static_cast<double>(occurrences.size());
      if (static_cast<double>(num_violated) <= (1 - kMinOverlap) * count ||
          samples_.size() > kMaxRanksInPairs)
        continue;
      SplitGroup(name, occurrences);
    }
  }

  template <typename Occurrences>
  void SplitGroup(int32_t name, const Occurrences& occurrences) {
    const size_t num_ranks = samples_.size();
    std::vector<int64_t> together(num_ranks * num_ranks);
    std::vector<int64_t> overlapping(together.size());
    for (const auto& [unused, pieces] : occurrences) {
      for (const auto& [a, piece_a] : pieces) {
        for (const auto& [b, piece_b] : pieces) {
          if (a >= b || GroupOf(name, a) != GroupOf(name, b)) continue;
          ++together[a * num_ranks + b];
          overlapping[a * num_ranks + b] += piece_a->start <= piece_b->end + 2 * error_bound_ &&
                                            piece_b->start <= piece_a->end + 2 * error_bound_;
        }
      }
    }
    std::vector<int32_t>& group = group_of_rank_[name];
    group.resize(num_ranks);
    std::iota(group.begin(), group.end(), 0);
    std::set<int32_t> groups;
    for (size_t b = 0; b < num_ranks; ++b) {
      for (size_t a = 0; a < b; ++a) {
        const int64_t count = together[a * num_ranks + b];
        if (count == 0 ||
            static_cast<double>(overlapping[a * num_ranks + b]) < kMinOverlap * static_cast<double>(count)) {
          continue;
        }
        group[b] = group[a];
        break;
      }
      groups.insert(group[b]);
    }
    job_.notes.push_back(absl::StrCat("not all ranks wait for each other in \"", names_[name],
                                      "\": ", groups.size(), " groups, found by what overlaps"));
  }

  int32_t GroupOf(int32_t name, size_t rank) const {
    const auto split = group_of_rank_.find(name);
    return split == group_of_rank_.end() ? 0 : split->second[rank];
  }

  // The last synchronization of each iteration that all ranks have, if it is the same one in all.
  std::vector<SyncKey> FindCuts(const Block& block) const {
    std::map<int64_t, std::set<SyncKey>> last;
    for (const std::vector<Piece>& pieces : block) {
      std::map<int64_t, SyncKey> of_rank;
      for (const Piece& piece : pieces) {
        if (piece.ordinal >= 0) of_rank[piece.iteration] = KeyOf(piece);
      }
      for (const auto& [iteration, key] : of_rank) last[iteration].insert(key);
    }
    std::vector<SyncKey> cuts;
    std::set<std::pair<int32_t, int32_t>> kinds;
    for (const auto& [unused, keys] : last) {
      if (keys.size() != 1 || group_of_rank_.count(std::get<0>(*keys.begin())) > 0) return {};
      cuts.push_back(*keys.begin());
      kinds.insert({std::get<0>(cuts.back()), std::get<2>(cuts.back())});
    }
    return kinds.size() == 1 && samples_.size() > 1 ? cuts : std::vector<SyncKey>();
  }

  void AddBlock(const Block& block) {
    const std::vector<SyncKey> cuts = FindCuts(block);
    if (cuts.size() < 2) {
      AddWholeBlock(block);
      return;
    }
    // When the last rank came to each cut, and each rank's place of it.
    std::vector<int64_t> when(cuts.size(), std::numeric_limits<int64_t>::min());
    std::vector<std::vector<size_t>> where(cuts.size(), std::vector<size_t>(block.size()));
    for (size_t rank = 0; rank < block.size(); ++rank) {
      size_t cut = 0;
      for (size_t i = 0; i < block[rank].size() && cut < cuts.size(); ++i) {
        if (block[rank][i].ordinal < 0 || KeyOf(block[rank][i]) != cuts[cut]) continue;
        when[cut] = std::max(when[cut], block[rank][i].start);
        where[cut++][rank] = i;
      }
      if (cut < cuts.size()) return AddWholeBlock(block);
    }
    for (size_t cut = 0; cut + 1 < cuts.size(); ++cut) {
      if (cut % kIterationsPerBatch == 0) ++num_batches_;
      BeginStep(std::get<1>(cuts[cut + 1]), 1, num_batches_, when[cut]);
      job_.steps.back().measured_seconds = kNanosecond * static_cast<double>(when[cut + 1] - when[cut]);
      for (size_t rank = 0; rank < block.size(); ++rank) {
        const Piece& transfer = block[rank][where[cut][rank]];
        BeginRank(rank, kNanosecond * static_cast<double>(transfer.end - when[cut]), transfer.name);
        for (size_t i = where[cut][rank] + 1; i < where[cut + 1][rank]; ++i) AddPiece(block[rank][i]);
        EndRank(std::get<0>(cuts[cut + 1]));
      }
      EndStep();
    }
  }

  // Where no measurement ends the iterations of all ranks, they are one step, which ranks begin as they began
  // it.
  void AddWholeBlock(const Block& block) {
    int64_t begin = std::numeric_limits<int64_t>::max();
    int64_t end = std::numeric_limits<int64_t>::min();
    std::set<int64_t> iterations;
    for (const std::vector<Piece>& pieces : block) {
      if (pieces.empty()) return;
      begin = std::min(begin, pieces.front().start);
      end = std::max(end, pieces.back().end);
      for (const Piece& piece : pieces) iterations.insert(piece.iteration);
    }
    BeginStep(*iterations.begin(), static_cast<int>(iterations.size()), ++num_batches_, begin);
    job_.steps.back().measured_seconds = kNanosecond * static_cast<double>(end - begin);
    for (size_t rank = 0; rank < block.size(); ++rank) {
      BeginRank(rank, kNanosecond * static_cast<double>(block[rank].front().start - begin), -1);
      for (const Piece& piece : block[rank]) AddPiece(piece);
      EndRank(-1);
    }
    EndStep();
  }

  void BeginStep(int64_t number, int num_iterations, int64_t batch, int64_t begin) {
    step_begin_ = begin;
    job_.graph.AddStep();
    job_.steps.push_back({number, 0, num_iterations, batch});
    groups_.clear();
  }

  // seconds: until the rank could begin. name: of what it was in until then.
  void BeginRank(size_t rank, double seconds, int32_t name) {
    rank_ = static_cast<int32_t>(rank);
    last_ = -1;
    position_ = 0;
    work_.clear();
    Add(KindOf(name, kTransfer), std::max(seconds, 0.0), -1);
  }

  void AddPiece(const Piece& piece) {
    if (piece.ordinal < 0) {
      const auto known = std::find_if(work_.begin(), work_.end(),
                                      [&](const auto& work) { return work.first == piece.name; });
      const double seconds = kNanosecond * static_cast<double>(piece.end - piece.start);
      if (known != work_.end()) {
        known->second += seconds;
      } else {
        work_.push_back({piece.name, seconds});
      }
      return;
    }
    AddWork(piece.name);
    const int32_t operation = Add(KindOf(piece.name, kTransfer), 0, position_);
    job_.operations[operation].start = kNanosecond * static_cast<double>(piece.start - step_begin_);
    job_.operations[operation].end = kNanosecond * static_cast<double>(piece.end - step_begin_);
    groups_[{KeyOf(piece), GroupOf(piece.name, rank_)}].push_back(operation);
    ++position_;
  }

  void EndRank(int32_t next_sync) { AddWork(next_sync); }

  // What was done since the last synchronization; the next one is of this name.
  void AddWork(int32_t next_sync) {
    for (const auto& [name, seconds] : work_) Add(KindOf(name, next_sync), seconds, position_);
    work_.clear();
  }

  int32_t Add(int32_t kind, double seconds, int position) {
    const int32_t operation = job_.graph.AddOperation();
    if (last_ >= 0) job_.graph.AddDependency(operation, last_);
    last_ = operation;
    Job::Operation& added = job_.operations.emplace_back();
    added.rank = rank_;
    added.kind = kind;
    added.own = seconds;
    if (position >= 0 && kinds_[kind].first != observer_) {
      added.place =
          places_.try_emplace({job_.ranks[rank_].stage, position, kind}, static_cast<int32_t>(places_.size()))
              .first->second;
    }
    return operation;
  }

  void EndStep() {
    for (const auto& [unused, members] : groups_) {
      double latest = -std::numeric_limits<double>::infinity();
      for (const int32_t member : members) latest = std::max(latest, job_.operations[member].start);
      for (const int32_t member : members) {
        // A rank that left before the last one came did not wait for it; then the replay does not fit, which
        // shows.
        job_.operations[member].own = std::max(job_.operations[member].end - latest, 0.0);
      }
      if (members.size() > 1) job_.graph.AddGroup(members);
    }
  }

  // What comes after the work, as a kind.
  static constexpr int32_t kTransfer = -2;

  // Of a name, and of the name of the synchronization after it.
  int32_t KindOf(int32_t name, int32_t next) {
    const auto [known, is_new] =
        kind_index_.emplace(std::make_pair(name, next), static_cast<int32_t>(kinds_.size()));
    if (is_new) kinds_.push_back({name, next});
    return known->second;
  }

  void NameKinds() {
    std::map<int32_t, int> num_kinds;
    for (const auto& [name, next] : kinds_) num_kinds[name] += next != kTransfer;
    for (const auto& [name, next] : kinds_) {
      Job::Kind& kind = job_.kinds.emplace_back();
      kind.name = name < 0 ? kOutside : names_[name];
      kind.operation = kind.name;
      kind.communicates = next == kTransfer;
      if (next == kTransfer && name < 0) kind.operation = "begin of the iterations";
      if (next != kTransfer && next >= 0 && num_kinds[name] > 1) {
        absl::StrAppend(&kind.operation, " before ", names_[next]);
      }
    }
  }

  // Of a pipeline, what its stages take for work of one name in the mean, and for what communicates the
  // median, as for timelines of others.
  void FindIdealTimesOfStages() {
    std::map<int32_t, std::vector<double>> by_name;
    for (const Job::Operation& operation : job_.operations) {
      if (operation.place >= 0) by_name[kinds_[operation.kind].first].push_back(operation.own);
    }
    std::map<int32_t, double> ideal;
    for (auto& [name, values] : by_name) {
      const double mean =
          std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
      ideal[name] = IsCollective(name) ? Median(std::move(values)) : mean;
    }
    for (Job::Operation& operation : job_.operations)
      operation.ideal = operation.place < 0 ? operation.own : ideal[kinds_[operation.kind].first];
  }

  bool IsCollective(int32_t name) const {
    return std::find(kinds_.begin(), kinds_.end(), std::make_pair(name, kTransfer)) != kinds_.end();
  }

  // Of what ranks do at the same place of a step, the median.
  void FindIdealTimes() {
    if (job_.ranks[0].stage >= 0) return FindIdealTimesOfStages();
    for (int step = 0; step < job_.graph.num_steps(); ++step) {
      const auto [first, last] = job_.graph.OperationsOf(step);
      std::map<int32_t, std::vector<double>> by_place;
      for (int32_t i = first; i < last; ++i) {
        if (job_.operations[i].place >= 0)
          by_place[job_.operations[i].place].push_back(job_.operations[i].own);
      }
      std::map<int32_t, double> ideal;
      for (auto& [place, values] : by_place) ideal[place] = Median(std::move(values));
      for (int32_t i = first; i < last; ++i) {
        Job::Operation& operation = job_.operations[i];
        operation.ideal = operation.place < 0 ? operation.own : ideal[operation.place];
      }
    }
  }

  std::vector<IterationSample> samples_;
  // Of all ranks, and by rank.
  std::vector<std::string> names_;
  std::map<std::string, int32_t> index_;
  std::vector<std::vector<int32_t>> names_of_rank_;
  int32_t observer_ = -3;
  int64_t error_bound_ = 0;
  std::vector<Block> blocks_;
  // By name, where not all ranks are one group.
  std::map<int32_t, std::vector<int32_t>> group_of_rank_;

  // Of the step and rank that is being added.
  std::map<std::pair<SyncKey, int32_t>, std::vector<int32_t>> groups_;
  int32_t rank_ = 0;
  int32_t last_ = -1;
  int position_ = 0;
  std::vector<std::pair<int32_t, double>> work_;  // by name

  std::map<std::pair<int32_t, int32_t>, int32_t> kind_index_;
  std::vector<std::pair<int32_t, int32_t>> kinds_;
  std::map<std::tuple<int, int, int32_t>, int32_t> places_;  // by stage, position and kind
  int64_t num_batches_ = 0;
  int64_t step_begin_ = 0;  // times since the machine's start would be rounded to nanoseconds
  Job job_;
};

}  // namespace

absl::StatusOr<Job> MakeJob(std::vector<IterationSample> samples) {
  if (samples.empty()) return absl::NotFoundError("no rank left iterations");
  return Maker(std::move(samples)).Make();
}

}  // namespace ott::whatif
