#include "ott/questions/saved/sampled_job.h"

#include <algorithm>
#include <cmath>
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
#include "ott/core/statistics/policy.h"
#include "questions/saved/block_pieces.h"
#include "questions/saved/meetings.h"

namespace ott::saved {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr char kOutside[] = "outside all measurements";

class Maker {
 public:
  explicit Maker(std::vector<IterationSample> samples) : samples_(std::move(samples)) {
    std::sort(samples_.begin(), samples_.end(),
              [](const IterationSample& a, const IterationSample& b) { return a.rank() < b.rank(); });
    job_.step_word = "iteration";
  }

  absl::StatusOr<ReplayJob> Make() {
    for (const IterationSample& sample : samples_) OTT_RETURN_IF_ERROR(CheckSample(sample));
    DescribeRanks();
    OTT_RETURN_IF_ERROR(CutBlocks());
    FindGroups();
    for (size_t begin = 0; begin < blocks_.size();) begin = AddBlocks(begin);
    SetMeasuredOfLongest();
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
    // Time that others took from a rank is no excess of its own.
    job_.taken_difference = all->taken_seconds - least_taken;
    job_.work_slowdown = SecondsOfOneSlowdown(*all) + job_.taken_difference;
    job_.taken_share = all->taken_share;
    if (all->taken_share < kTakenShare) return;
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
    if (const int num_missing = world_size - static_cast<int>(samples_.size()); num_missing > 0) {
      job_.incomplete = true;
      std::vector<std::string> missing;
      std::set<int> there;
      for (const IterationSample& sample : samples_) there.insert(sample.rank());
      constexpr int kMaxNamed = 8;
      for (int rank = 0; rank < world_size && missing.size() < kMaxNamed; ++rank) {
        if (there.count(rank) == 0) missing.push_back(absl::StrCat(rank));
      }
      job_.notes.push_back(absl::StrCat(num_missing, " of ", world_size,
                                        " ranks left no iterations: ", absl::StrJoin(missing, ", "),
                                        num_missing > kMaxNamed ? ", ..." : ""));
    }
  }

  // If not all ranks do like work, those that do are a stage of a pipeline, in the order of the lowest ranks;
  // replicas are the ranks' places in their stages, if these have as many.
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
    for (ReplayJob::Rank& rank : job_.ranks) rank.replica = -1;
  }

  // Declares the groups of the configuration. A group of all ranks is none.
  void DeclareGroups() {
    std::map<std::string, int32_t> index;
    std::map<int32_t, std::vector<int32_t>> group_of_rank;
    for (size_t rank = 0; rank < samples_.size(); ++rank) {
      for (int i = 0; i < std::min(samples_[rank].group_size(), samples_[rank].names_size()); ++i) {
        if (samples_[rank].group(i).empty()) continue;
        const auto known =
            index.emplace(samples_[rank].group(i), static_cast<int32_t>(index.size()) + 1).first;
        std::vector<int32_t>& group = group_of_rank[names_of_rank_[rank][static_cast<size_t>(i)]];
        group.resize(samples_.size());
        group[rank] = known->second;
      }
    }
    for (const auto& [name, groups] : group_of_rank) {
      if (std::count(groups.begin(), groups.end(), groups[0]) == static_cast<int64_t>(groups.size()))
        continue;
      for (size_t rank = 0; rank < groups.size(); ++rank) meetings_->Declare(name, rank, groups[rank]);
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
    int64_t next_iteration = -1;
    int64_t num_iterations = 0;
    std::vector<int64_t> inside(samples_.size());
    for (const auto& [iteration, of_ranks] : by_iteration) {
      if (of_ranks.size() != samples_.size()) continue;
      follows_.push_back(iteration == next_iteration);
      next_iteration = iteration + of_ranks[0]->iteration_end_size();
      num_iterations += of_ranks[0]->iteration_end_size();
      Block& block = blocks_.emplace_back();
      for (size_t rank = 0; rank < samples_.size(); ++rank) {
        block.push_back(CutBlock(samples_[rank], *of_ranks[rank], names_of_rank_[rank]));
        inside[rank] += FindWorkInside(rank, *of_ranks[rank]);
      }
    }
    if (num_iterations > 0) {
      const auto [least, most] = std::minmax_element(inside.begin(), inside.end());
      job_.inside_difference =
          kNanosecond * static_cast<double>(*most - *least) / static_cast<double>(num_iterations);
    }
    NoteWorkInside();
    if (num_lost > 0) {
      job_.notes.push_back(absl::StrCat(
          num_lost, " iterations that were to be kept had too many intervals, or were profiled"));
    }
    if (!blocks_.empty()) return absl::OkStatus();
    return absl::NotFoundError(
        "no iterations were kept by all ranks; it takes 17 iterations after warm-up until the first ones "
        "are");
  }

  // Returns for how long others ran inside of collectives; a collective holds work if that is most of it.
  int64_t FindWorkInside(size_t rank, const IterationBlock& block) {
    const std::vector<int64_t> inside = TimeInsideOfCollectives(samples_[rank], block);
    std::vector<int64_t> whole(inside.size());
    for (int i = 0; i < block.name_size(); ++i)
      whole[static_cast<size_t>(block.name(i))] += block.duration(i);
    for (size_t name = 0; name < inside.size(); ++name) {
      if (2 * inside[name] > whole[name]) hold_work_.insert(names_of_rank_[rank][name]);
    }
    return std::accumulate(inside.begin(), inside.end(), int64_t{0});
  }

  void NoteWorkInside() {
    for (const int32_t name : hold_work_) {
      job_.notes.push_back(absl::StrCat("others work inside of \"", names_[static_cast<size_t>(name)],
                                        "\", which so takes no blame; where it waits for that work, mending "
                                        "saves more than is predicted"));
    }
  }

  void FindGroups() {
    meetings_.emplace(samples_.size());
    DeclareGroups();
    meetings_->Learn(blocks_, error_bound_);
    for (const auto& [name, num_groups] : meetings_->num_groups_found()) {
      job_.notes.push_back(
          absl::StrCat("not all ranks wait for each other in \"", names_[name], "\": ", num_groups,
                       " groups, found by what overlaps; if it runs beside the work, mending "
                       "saves more than is predicted"));
    }
    job_.may_overlap = !meetings_->num_groups_found().empty();
    FindUnmatched();
    component_of_rank_ = meetings_->Components();
    const std::set<int> components(component_of_rank_.begin(), component_of_rank_.end());
    num_components_ = components.size();
    seconds_of_component_.resize(samples_.size());
    job_.knows_who_waits = num_components_ < samples_.size();
    FindCut();
  }

  // A name under which the ranks of one group come again and again, and some of them far more often: so do
  // those between two others in a pipeline, which receive and send under one name.
  void FindUnmatched() {
    std::map<std::pair<int32_t, int32_t>, std::vector<double>> counts;  // by name and declared group
    for (size_t rank = 0; rank < samples_.size(); ++rank) {
      std::map<int32_t, double> of_rank;
      for (const Block& block : blocks_) {
        for (const Piece& piece : block[rank]) of_rank[piece.name] += piece.ordinal >= 0;
      }
      for (const auto& [name, count] : of_rank) {
        if (count > 0) counts[{name, meetings_->DeclaredGroup(name, rank)}].push_back(count);
      }
    }
    for (const auto& [name_and_group, of_ranks] : counts) {
      const auto [least, most] = std::minmax_element(of_ranks.begin(), of_ranks.end());
      if (*most > kMostOfVisits * *least) job_.unmatched = names_[name_and_group.first];
    }
  }

  // Finds the measurement that all ranks meet at in most iterations; of several, the last one of the
  // iteration.
  void FindCut() {
    std::map<std::pair<int32_t, int32_t>, int64_t> count;
    for (const Block& block : blocks_) {
      for (const Piece& piece : block[0]) {
        if (piece.ordinal >= 0 && meetings_->IsOfAll(piece)) ++count[{piece.name, piece.ordinal}];
      }
    }
    int64_t most = 0;
    for (const auto& [unused, times] : count) most = std::max(most, times);
    // Each comes again and again, so that the last of a block are in the order of an iteration.
    for (auto block = blocks_.rbegin(); block != blocks_.rend() && !cut_; ++block) {
      for (auto piece = (*block)[0].rbegin(); piece != (*block)[0].rend() && !cut_; ++piece) {
        if (piece->ordinal < 0) continue;
        const auto known = count.find({piece->name, piece->ordinal});
        if (known != count.end() && known->second == most) cut_ = known->first;
      }
    }
  }

  bool IsCut(const Piece& piece) const {
    return cut_ && piece.ordinal >= 0 && cut_ == std::make_pair(piece.name, piece.ordinal);
  }

  // The iterations in which all ranks have the cut.
  std::vector<int64_t> FindCuts(const Block& block) const {
    std::map<int64_t, size_t> num_ranks;
    for (const std::vector<Piece>& pieces : block) {
      for (const Piece& piece : pieces) {
        if (IsCut(piece)) ++num_ranks[piece.iteration];
      }
    }
    std::vector<int64_t> cuts;
    for (const auto& [iteration, count] : num_ranks) {
      if (count == block.size()) cuts.push_back(iteration);
    }
    return samples_.size() > 1 ? cuts : std::vector<int64_t>();
  }

  // Adds a block and those that follow it without a gap. Returns the first one after these.
  size_t AddBlocks(size_t begin) {
    Block joined = blocks_[begin];
    size_t end = begin + 1;
    for (; end < blocks_.size() && follows_[end]; ++end) Join(blocks_[end], joined);
    const std::vector<int64_t> cuts = FindCuts(joined);
    if (cuts.size() >= 2) {
      AddSteps(joined, cuts);
    } else {
      for (size_t i = begin; i < end; ++i) AddWholeBlock(blocks_[i]);
    }
    return end;
  }

  // Between two blocks, each rank kept the first one.
  void Join(const Block& next, Block& joined) const {
    for (size_t rank = 0; rank < joined.size(); ++rank) {
      std::vector<Piece>& pieces = joined[rank];
      if (!pieces.empty() && !next[rank].empty() && next[rank].front().start > pieces.back().end) {
        const Piece last = pieces.back();
        pieces.push_back({observer_, -1, last.iteration, last.end, next[rank].front().start});
      }
      pieces.insert(pieces.end(), next[rank].begin(), next[rank].end());
    }
  }

  void AddSteps(const Block& block, const std::vector<int64_t>& cuts) {
    // When the last rank came to each cut, and each rank's place of it.
    std::vector<int64_t> when(cuts.size(), std::numeric_limits<int64_t>::min());
    std::vector<std::vector<size_t>> where(cuts.size(), std::vector<size_t>(block.size()));
    for (size_t rank = 0; rank < block.size(); ++rank) {
      size_t cut = 0;
      for (size_t i = 0; i < block[rank].size() && cut < cuts.size(); ++i) {
        if (!IsCut(block[rank][i]) || block[rank][i].iteration != cuts[cut]) continue;
        when[cut] = std::max(when[cut], block[rank][i].start);
        where[cut++][rank] = i;
      }
    }
    int64_t first_of_batch = -kIterationsPerBatch;
    for (size_t cut = 0; cut + 1 < cuts.size(); ++cut) {
      if (cuts[cut] >= first_of_batch + kIterationsPerBatch) {
        ++num_batches_;
        first_of_batch = cuts[cut];
      }
      BeginStep(cuts[cut] + 1, static_cast<int>(cuts[cut + 1] - cuts[cut]), num_batches_);
      job_.steps.back().measured_seconds = kNanosecond * static_cast<double>(when[cut + 1] - when[cut]);
      for (size_t rank = 0; rank < block.size(); ++rank) {
        const Piece& transfer = block[rank][where[cut][rank]];
        BeginRank(rank, when[cut], kNanosecond * static_cast<double>(transfer.end - when[cut]),
                  transfer.name);
        for (size_t i = where[cut][rank] + 1; i < where[cut + 1][rank]; ++i) AddPiece(block[rank][i]);
        EndRank(cut_->first);
      }
      EndStep();
    }
  }

  // If no measurement ends the iterations of all ranks, they are one step, which ranks begin as they began
  // it. Ranks that do not wait for each other move by themselves: a step of them begins for each when it
  // begins it, and the job takes as long as those of them that take longest.
  void AddWholeBlock(const Block& block) {
    std::map<int, std::pair<int64_t, int64_t>> span_of_component;
    std::set<int64_t> iterations;
    for (size_t rank = 0; rank < block.size(); ++rank) {
      const std::vector<Piece>& pieces = block[rank];
      if (pieces.empty()) return;
      auto& span =
          span_of_component
              .emplace(component_of_rank_[rank], std::make_pair(pieces.front().start, pieces.back().end))
              .first->second;
      span = {std::min(span.first, pieces.front().start), std::max(span.second, pieces.back().end)};
      for (const Piece& piece : pieces) iterations.insert(piece.iteration);
    }
    BeginStep(*iterations.begin(), static_cast<int>(iterations.size()), ++num_batches_);
    for (const auto& [component, span] : span_of_component) {
      job_.steps.back().measured_seconds = kNanosecond * static_cast<double>(span.second - span.first);
      seconds_of_component_[static_cast<size_t>(component)].push_back(job_.steps.back().measured_seconds);
    }
    for (size_t rank = 0; rank < block.size(); ++rank) {
      const int64_t begin = span_of_component.at(component_of_rank_[rank]).first;
      BeginRank(rank, begin, kNanosecond * static_cast<double>(block[rank].front().start - begin), -1);
      for (const Piece& piece : block[rank]) AddPiece(piece);
      EndRank(-1);
    }
    EndStep();
  }

  void SetMeasuredOfLongest() {
    if (num_components_ == 1) return;
    job_.longest_part = DependencyGraph::LongestPart(seconds_of_component_);
    for (size_t step = 0; step < job_.steps.size(); ++step)
      job_.steps[step].measured_seconds = seconds_of_component_[job_.longest_part][step];
  }

  void BeginStep(int64_t number, int num_iterations, int64_t batch) {
    job_.graph.AddStep();
    job_.steps.push_back({number, 0, num_iterations, batch});
    members_.clear();
  }

  // begin: of the step. seconds: from there until the rank could begin. name: of what it was in until then.
  void BeginRank(size_t rank, int64_t begin, double seconds, int32_t name) {
    step_begin_ = begin;
    rank_ = static_cast<int32_t>(rank);
    last_ = -1;
    position_ = 0;
    work_.clear();
    Add(KindOf(name, kTransfer), std::max(seconds, 0.0), name >= 0 ? kPositionOfCut : -1);
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
    members_[KeyOf(piece)].push_back({operation, meetings_->GroupOf(piece, rank_), &piece});
    ++position_;
  }

  void EndRank(int32_t next_sync) { AddWork(next_sync); }

  // Adds what was done since the last synchronization; the next one is of this name.
  void AddWork(int32_t next_sync) {
    for (const auto& [name, seconds] : work_) Add(KindOf(name, next_sync), seconds, position_);
    work_.clear();
  }

  int32_t Add(int32_t kind, double seconds, int position) {
    const int32_t operation = job_.graph.AddOperation(component_of_rank_[static_cast<size_t>(rank_)]);
    if (last_ >= 0) job_.graph.AddDependency(operation, last_);
    last_ = operation;
    ReplayJob::Operation& added = job_.operations.emplace_back();
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
    for (const auto& [unused, members] : members_) {
      std::map<int32_t, std::vector<int32_t>> groups;
      std::map<int32_t, const Member*> of_rank;
      for (const Member& member : members) {
        groups[member.group].push_back(member.operation);
        of_rank[job_.operations[member.operation].rank] = &member;
      }
      for (const auto& [unused_group, operations] : groups) {
        if (operations.size() > 1) job_.graph.AddGroup(operations);
      }
      for (const Member& member : members) {
        ReplayJob::Operation& operation = job_.operations[member.operation];
        double latest = operation.start;
        for (const int32_t other : groups[member.group])
          latest = std::max(latest, job_.operations[other].start);
        for (const size_t other : meetings_->WaitsFor(*member.piece, static_cast<size_t>(operation.rank))) {
          const auto found = of_rank.find(static_cast<int32_t>(other));
          if (found == of_rank.end()) continue;
          const int32_t awaited = found->second->operation;
          // Seldom it leaves before.
          if (job_.operations[awaited].start > operation.end) continue;
          latest = std::max(latest, job_.operations[awaited].start);
          // It depends on what the other rank did before it came.
          job_.graph.AddDependency(member.operation, awaited - 1);
        }
        // A rank that left before the last one came did not wait for it; then the replay does not fit, which
        // shows.
        operation.own = std::max(operation.end - latest, 0.0);
      }
    }
  }

  // At the position where the step is cut, ranks leave the measurement that they met at.
  static constexpr int kPositionOfCut = std::numeric_limits<int>::max();

  // The kind of what comes after the work.
  static constexpr int32_t kTransfer = -2;

  // Returns the kind of a name and of the name of the synchronization after it.
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
      ReplayJob::Kind& kind = job_.kinds.emplace_back();
      kind.name = name < 0 ? kOutside : names_[name];
      kind.operation = kind.name;
      kind.communicates = next == kTransfer;
      kind.holds_work = kind.communicates && hold_work_.count(name) > 0;
      if (next == kTransfer && name < 0) kind.operation = "begin of the iterations";
      if (next != kTransfer && next >= 0 && num_kinds[name] > 1) {
        absl::StrAppend(&kind.operation, " before ", names_[next]);
      }
    }
  }

  // Finds ideal times of a pipeline as for timelines of others: for work of one name the mean over its
  // stages, for communication the median.
  void FindIdealTimesOfStages() {
    std::map<int32_t, std::vector<double>> by_name;
    for (const ReplayJob::Operation& operation : job_.operations) {
      if (operation.place >= 0) by_name[kinds_[operation.kind].first].push_back(operation.own);
    }
    std::map<int32_t, double> ideal;
    for (auto& [name, values] : by_name) {
      const double mean =
          std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
      ideal[name] = IsCollective(name) ? Median(std::move(values)) : mean;
    }
    for (ReplayJob::Operation& operation : job_.operations)
      operation.ideal = HasIdeal(operation) ? ideal[kinds_[operation.kind].first] : operation.own;
  }

  // How long a collective that holds work would take is not known.
  bool HasIdeal(const ReplayJob::Operation& operation) const {
    const auto& [name, next] = kinds_[operation.kind];
    return operation.place >= 0 && (next != kTransfer || hold_work_.count(name) == 0);
  }

  bool IsCollective(int32_t name) const {
    return std::find(kinds_.begin(), kinds_.end(), std::make_pair(name, kTransfer)) != kinds_.end();
  }

  // Takes the median for what ranks do at the same place of a step, and nothing for what one rank alone ever
  // does.
  void FindIdealTimes() {
    if (job_.ranks[0].stage >= 0) return FindIdealTimesOfStages();
    std::vector<std::set<int32_t>> ranks_of_kind(kinds_.size());
    for (const ReplayJob::Operation& operation : job_.operations)
      ranks_of_kind[operation.kind].insert(operation.rank);
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
        ReplayJob::Operation& operation = job_.operations[i];
        operation.ideal = HasIdeal(operation) ? ideal[operation.place] : operation.own;
        if (HasIdeal(operation) && job_.ranks.size() > 1 && ranks_of_kind[operation.kind].size() == 1)
          operation.ideal = 0;
      }
    }
  }

  std::vector<IterationSample> samples_;
  // The names of all ranks, and by rank.
  std::vector<std::string> names_;
  std::map<std::string, int32_t> index_;
  std::vector<std::vector<int32_t>> names_of_rank_;
  int32_t observer_ = -3;
  int64_t error_bound_ = 0;
  std::vector<Block> blocks_;
  // Collectives that work is measured inside of.
  std::set<int32_t> hold_work_;
  // By block: it follows the one before.
  std::vector<bool> follows_;
  std::optional<Meetings> meetings_;
  std::vector<int> component_of_rank_;
  // By component, of the blocks that are a step each.
  std::vector<std::vector<double>> seconds_of_component_;
  size_t num_components_ = 0;
  // The name and position at which iterations are cut; nullopt: all ranks meet at none.
  std::optional<std::pair<int32_t, int32_t>> cut_;

  // A member of the step and rank that is being added.
  struct Member {
    int32_t operation = 0;
    int32_t group = 0;
    const Piece* piece = nullptr;
  };
  std::map<SyncKey, std::vector<Member>> members_;
  int32_t rank_ = 0;
  int32_t last_ = -1;
  int position_ = 0;
  std::vector<std::pair<int32_t, double>> work_;  // by name

  std::map<std::pair<int32_t, int32_t>, int32_t> kind_index_;
  std::vector<std::pair<int32_t, int32_t>> kinds_;
  std::map<std::tuple<int, int, int32_t>, int32_t> places_;  // by stage, position and kind
  int64_t num_batches_ = 0;
  int64_t step_begin_ = 0;  // of the rank; times since the machine's start would be rounded to nanoseconds
  ReplayJob job_;
};

}  // namespace

absl::StatusOr<ReplayJob> MakeJob(std::vector<IterationSample> samples) {
  if (samples.empty()) return absl::NotFoundError("no rank left iterations");
  return Maker(std::move(samples)).Make();
}

}  // namespace ott::saved
