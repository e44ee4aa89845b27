#include "ott/tests/shapes/shape.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"

namespace ott::shapes {

void RankProgram::Work(const std::string& name, double seconds, double excess) {
  const double noisy = seconds * std::exp(noise_ * std::normal_distribution<double>(0, 1)(random_));
  const double all = seconds == 0 ? excess : noisy + excess * noisy / seconds;
  acts_.push_back({Act::Kind::kWork, name, all});
  acts_.back().excess = seconds == 0 ? all : all - noisy;
}

void RankProgram::Collective(const std::string& name, double seconds, Among among, double late) {
  acts_.push_back({Act::Kind::kCollective, name, seconds, among, late});
}

void RankProgram::Broadcast(const std::string& name, int root, double seconds) {
  acts_.push_back({Act::Kind::kBroadcast, name, seconds, Among::kAll, 0, 0, false, root});
}

void RankProgram::Begin(const std::string& name, double seconds, bool measured) {
  acts_.push_back({Act::Kind::kBegin, name, seconds, Among::kAll, 0, 0, measured});
}

void RankProgram::Wait(const std::string& name, bool measured) {
  acts_.push_back({Act::Kind::kWait, name, 0, Among::kAll, 0, 0, measured});
}

void RankProgram::Send(const std::string& name, int to) {
  acts_.push_back({Act::Kind::kSend, name, 10e-6, Among::kAll, 0, 0, false, to});
}

void RankProgram::Receive(const std::string& name, int from, double seconds) {
  acts_.push_back({Act::Kind::kReceive, name, seconds, Among::kAll, 0, 0, false, from});
}

void RankProgram::EndIteration() { acts_.push_back({Act::Kind::kEndIteration, ""}); }

void RankProgram::SetWork(const std::vector<double>& seconds) {
  auto next = seconds.begin();
  for (Act& act : acts_) {
    if (act.kind != Act::Kind::kWork) continue;
    OTT_CHECK(next != seconds.end()) << act.name << ": too few";
    act.seconds = *next++;
  }
}

RankProgram RankProgram::WithoutPlanted() const {
  RankProgram program = *this;
  for (Act& act : program.acts_) {
    act.seconds = std::max(0.0, act.seconds - act.excess);
    act.late = 0;
  }
  return program;
}

bool Shape::IsPlanted(int rank, int num_ranks, int planted) const {
  return planted >= 0 && (rank - planted + num_ranks) % num_ranks < num_planted;
}

std::vector<int> Shape::Members(Among among, int rank, int num_ranks) const {
  const int size = RanksOfPart(num_ranks);
  std::vector<int> members;
  for (int other = 0; other < num_ranks; ++other) {
    if (among == Among::kPart && other / size != rank / size) continue;
    if (among == Among::kPlace && other % size != rank % size) continue;
    if (among == Among::kPair && other / 2 != rank / 2) continue;
    if (among == Among::kAcrossPairs && (other / size != rank / size || other % 2 != rank % 2)) continue;
    members.push_back(other);
  }
  return members;
}

RankProgram Shape::Program(int rank, int num_ranks, int seed, int planted) const {
  std::uniform_real_distribution<double> chance;
  std::mt19937_64 shared(static_cast<uint64_t>(seed) * 7919 + 17);
  std::mt19937_64 own(static_cast<uint64_t>(seed) * 1000 + static_cast<uint64_t>(rank) + 500);
  RankProgram program(static_cast<uint64_t>(seed) * 1000 + static_cast<uint64_t>(rank), noise);
  for (int i = 0; i < num_iterations; ++i) {
    const bool has_begun = i >= late * num_iterations;
    Place at = {rank, num_ranks, i, num_iterations, has_begun && IsPlanted(rank, num_ranks, planted)};
    at.phase = std::vector<double>{1, 2, 0.5}[std::uniform_int_distribution<size_t>(0, 2)(shared)];
    at.chance = chance(own);
    at.shared_chance = chance(shared);
    iterate(at, program);
    program.EndIteration();
  }
  return program;
}

std::vector<RankProgram> Shape::Programs(int num_ranks, int seed, int planted) const {
  std::vector<RankProgram> programs;
  for (int rank = 0; rank < num_ranks; ++rank) programs.push_back(Program(rank, num_ranks, seed, planted));
  return programs;
}

void Shape::Complete() {
  const int num_ranks = sizes.back();
  std::set<std::string> names;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const RankProgram program = Program(rank, num_ranks, 0, -1);
    for (const Act& act : program.acts()) {
      if (act.kind == Act::Kind::kWork || act.kind == Act::Kind::kEndIteration) continue;
      names.insert(act.name);
      const bool is_message = act.kind == Act::Kind::kSend || act.kind == Act::Kind::kReceive;
      const Among among = is_message && is_pipeline ? Among::kPlace : act.among;
      if (among != Among::kAll && declares_groups) groups[act.name] = among;
    }
  }
  if (declares_collectives) collectives.assign(names.begin(), names.end());
}

std::string WorkPath(const std::string& run_dir, int rank) {
  return absl::StrCat(run_dir, "/work_of_rank_", rank);
}

std::string EndsPath(const std::string& run_dir, int rank) {
  return absl::StrCat(run_dir, "/ends_of_rank_", rank);
}

}  // namespace ott::shapes
