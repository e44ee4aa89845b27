#include "questions/saved/worker_step.h"

#include <algorithm>
#include <array>
#include <map>

namespace ott::saved {
namespace {

using Type = OperationType;

// Clocks of one worker may disagree by so many seconds.
constexpr double kTimeTolerance = 5e-5;

// Finds them for one worker and step.
class Finder {
 public:
  Finder(absl::Span<const Timeline::Event> events, int stage, const Pipeline& pipeline)
      : events_(events), stage_(stage), pipeline_(pipeline) {
    for (size_t i = 0; i < events.size(); ++i) {
      by_type_[static_cast<int>(events[i].type)].push_back(static_cast<int32_t>(i));
    }
    for (const Type type : {Type::kForwardCompute, Type::kBackwardCompute}) {
      computes_.insert(computes_.end(), Of(type).begin(), Of(type).end());
    }
    SortByStart(computes_);
  }

  WorkerStep Find() {
    Chain(computes_);
    for (const Type type :
         {Type::kForwardSend, Type::kForwardReceive, Type::kBackwardSend, Type::kBackwardReceive}) {
      Chain(Of(type));
      MatchMessages(type);
    }
    HoldFirstBackwardMessages();
    AddDataParallel();
    AddAfterComputes();
    return std::move(found_);
  }

 private:
  const std::vector<int32_t>& Of(Type type) const { return by_type_[static_cast<int>(type)]; }
  double Start(int32_t event) const { return events_[event].start; }
  double End(int32_t event) const { return events_[event].start + events_[event].duration; }

  void SortByStart(std::vector<int32_t>& events) const {
    std::stable_sort(events.begin(), events.end(),
                     [this](int32_t a, int32_t b) { return Start(a) < Start(b); });
  }

  void After(int32_t event, int32_t comes_after) { found_.comes_after.emplace_back(event, comes_after); }

  void Chain(const std::vector<int32_t>& events) {
    for (size_t i = 1; i < events.size(); ++i) After(events[i], events[i - 1]);
  }

  // Finds the computation of its direction that each message is for, or of.
  void MatchMessages(Type type) {
    const bool is_forward = type == Type::kForwardSend || type == Type::kForwardReceive;
    const bool receives = type == Type::kForwardReceive || type == Type::kBackwardReceive;
    const std::vector<int32_t>& computes = Of(is_forward ? Type::kForwardCompute : Type::kBackwardCompute);
    if (computes.empty()) return;
    // Profilers also record messages that there were none of: receives after the last computation, and sends
    // before the end of the first.
    const double last_start = Start(*std::max_element(
        computes.begin(), computes.end(), [this](int32_t a, int32_t b) { return Start(a) < Start(b); }));
    const double first_end = End(*std::min_element(computes.begin(), computes.end(),
                                                   [this](int32_t a, int32_t b) { return End(a) < End(b); }));
    std::vector<int32_t> messages;
    int32_t num_early = 0;
    for (const int32_t message : Of(type)) {
      if (receives && Start(message) > last_start + kTimeTolerance) continue;
      if (!receives && End(message) < first_end - kTimeTolerance) {
        ++num_early;
        continue;
      }
      messages.push_back(message);
    }
    if (messages.empty()) return;
    // The first receive of all may be missing, being none.
    const bool is_edge = stage_ == 0 || stage_ == pipeline_.num_stages - 1;
    const bool is_whole = events_[messages.back()].sequence - events_[messages.front()].sequence + 1 ==
                              static_cast<int32_t>(messages.size()) &&
                          events_[messages.front()].sequence == num_early;
    const int32_t shift =
        (receives && is_edge && is_whole && messages.size() + 1 == computes.size() ? 1 : 0) - num_early;
    // Counts the messages so far, by chunk of the stage.
    std::map<int32_t, int32_t> ordinals;
    std::vector<int32_t> ordinal_of_compute(computes.size());
    for (size_t i = 0; i < computes.size(); ++i) {
      ordinal_of_compute[i] = ordinals[events_[computes[i]].chunk]++;
    }
    for (const int32_t message : messages) {
      const int64_t index = int64_t{events_[message].sequence} + shift;
      if (index < 0 || index >= static_cast<int64_t>(computes.size())) continue;
      const int32_t compute = computes[index];
      if (receives) {
        After(compute, message);
        if (index > 0) After(message, computes[index - 1]);
      } else {
        After(message, compute);
      }
      // Chunk c of stage s is number c * num_stages + s of the model.
      const int32_t chunk = std::max(events_[compute].chunk, 0) * pipeline_.num_stages + stage_;
      const int32_t to = is_forward == receives ? chunk - 1 : chunk + 1;
      if (to < 0 || to >= pipeline_.num_stages * pipeline_.num_chunks) continue;
      found_.messages[static_cast<int>(type) - static_cast<int>(Type::kForwardSend)].push_back(
          {message, receives ? to : chunk, ordinal_of_compute[index]});
    }
  }

  // The first ones of the way back are posted before the forward computation that comes before it.
  void HoldFirstBackwardMessages() {
    const auto first = std::find_if(computes_.begin(), computes_.end(), [this](int32_t event) {
      return events_[event].type == Type::kBackwardCompute;
    });
    if (first == computes_.end() || first - computes_.begin() < 2) return;
    for (const Type type : {Type::kBackwardReceive, Type::kBackwardSend}) {
      if (!Of(type).empty() && events_[Of(type).front()].sequence == 0) After(Of(type).front(), *(first - 2));
    }
  }

  void AddDataParallel() {
    std::vector<int32_t> exchanges = Of(Type::kParamsAllGather);
    exchanges.insert(exchanges.end(), Of(Type::kGradsReduceScatter).begin(),
                     Of(Type::kGradsReduceScatter).end());
    SortByStart(exchanges);
    Chain(exchanges);
    // The last gather of a chunk's parameters comes before its first computation.
    std::map<int32_t, int32_t> gather_of_chunk;
    for (const int32_t gather : Of(Type::kParamsAllGather)) gather_of_chunk[events_[gather].chunk] = gather;
    for (const auto& [chunk, gather] : gather_of_chunk) {
      for (const int32_t compute : computes_) {
        if (events_[compute].type != Type::kForwardCompute || events_[compute].chunk != chunk) continue;
        After(compute, gather);
        break;
      }
    }
    if (!pipeline_.overlaps_gradients) return;
    std::map<int32_t, int32_t> scatter_of_chunk;
    for (const int32_t scatter : Of(Type::kGradsReduceScatter)) {
      scatter_of_chunk.emplace(events_[scatter].chunk, scatter);
    }
    for (const auto& [chunk, scatter] : scatter_of_chunk) {
      int32_t last = -1;
      for (const int32_t compute : Of(Type::kBackwardCompute)) {
        if (events_[compute].chunk == chunk && (last < 0 || End(compute) > End(last))) last = compute;
      }
      if (last >= 0) After(scatter, last);
    }
  }

  // Clean-up, reductions and the optimizer.
  void AddAfterComputes() {
    int32_t last = -1;
    for (const int32_t compute : computes_) {
      if (last < 0 || End(compute) > End(last)) last = compute;
    }
    std::vector<int32_t> chain;
    if (last >= 0) chain.push_back(last);
    const auto append = [&](Type type) { chain.insert(chain.end(), Of(type).begin(), Of(type).end()); };
    append(Type::kGc);
    const size_t num_before = chain.size();
    append(Type::kLayernormGradsAllReduce);
    append(Type::kEmbeddingGradsAllReduce);
    append(pipeline_.overlaps_gradients ? Type::kSeparateGradsAllReduce : Type::kGradsReduceScatter);
    append(Type::kClipMainGrad);
    append(Type::kOptimizer);
    Chain(chain);
    if (pipeline_.overlaps_gradients && !Of(Type::kGradsReduceScatter).empty() && num_before < chain.size()) {
      After(chain[num_before], Of(Type::kGradsReduceScatter).back());
    }
  }

  const absl::Span<const Timeline::Event> events_;
  const int stage_;
  const Pipeline& pipeline_;
  std::array<std::vector<int32_t>, kNumOperationTypes> by_type_;
  std::vector<int32_t> computes_;
  WorkerStep found_;
};

}  // namespace

WorkerStep FindDependencies(absl::Span<const Timeline::Event> events, int stage, const Pipeline& pipeline) {
  return Finder(events, stage, pipeline).Find();
}

}  // namespace ott::saved
