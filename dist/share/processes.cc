#include "ott/dist/share/processes.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/parallel_for.h"
#include "ott/dist/share/far_index.h"

namespace ott {
namespace {

constexpr int kShareTag = 0;

// A message of protobuf has less than 2 GiB, with what is beside the result.
constexpr size_t kMostResultBytes = (size_t{1} << 31) - 4096;

Processes* g_processes = nullptr;

// This thread works on a piece.
thread_local bool t_works = false;

absl::StatusOr<std::string> List(const std::string& argument, int /*num_threads*/) {
  internal::ListingRequest request;
  if (!request.ParseFromString(argument)) return absl::InternalError("no ListingRequest");
  return internal::ListBelow(request).SerializeAsString();
}

absl::StatusOr<std::string> Read(const std::string& argument, int /*num_threads*/) {
  internal::FileRequest request;
  if (!request.ParseFromString(argument)) return absl::InternalError("no FileRequest");
  return ReadFile(request.path(), request.max_bytes());
}

constexpr ShareTask kList = {"list", &List};
constexpr ShareTask kRead = {"read", &Read};

// Runs `work` on the caller's thread and up to n - 1 others.
void OnThreads(int n, const std::function<void()>& work) {
  ThreadGroup threads;
  for (int i = 1; i < n && threads.Start(work);) ++i;
  work();
  threads.Join();
}

}  // namespace

Processes::Processes(std::vector<ShareTask> tasks, const Options& options)
    : tasks_(std::move(tasks)), options_(options), num_threads_(NumThreads(options.num_threads)) {}

absl::StatusOr<std::unique_ptr<Processes>> Processes::Start(
    std::function<absl::StatusOr<std::unique_ptr<Communicator>>()> connect, std::vector<ShareTask> tasks,
    const Options& options) {
  tasks.push_back(kList);
  tasks.push_back(kRead);
  std::unique_ptr<Processes> processes(new Processes(std::move(tasks), options));
  if (!processes->talker_.Start(
          [self = processes.get(), connect = std::move(connect)] { self->Talk(connect); }))
    return absl::ResourceExhaustedError("no thread could be started");
  std::unique_lock<std::mutex> lock(processes->mutex_);
  processes->changed_.wait(lock, [&] { return processes->started_.has_value(); });
  OTT_RETURN_IF_ERROR(*processes->started_);
  return processes;
}

Processes::~Processes() {
  if (g_processes == this) SetProcesses(nullptr);
  if (GetFarFiles() == files_.get()) SetFarFiles(nullptr);
  Finish();
}

void Processes::Talk(const std::function<absl::StatusOr<std::unique_ptr<Communicator>>()>& connect) {
  absl::StatusOr<std::unique_ptr<Communicator>> all = connect();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    started_ = all.status();
    if (all.ok()) {
      rank_ = (*all)->rank();
      peers_.resize((*all)->size());
      for (int peer = 0; peer < (*all)->size(); ++peer) {
        hosts_.push_back((*all)->host(peer));
        peers_[peer].heard = Clock::now();
      }
      if (rank_ != 0) {
        internal::ShareReply hello;
        hello.set_num_threads(num_threads_);
        Post(0, hello);
      }
    }
    changed_.notify_all();
    if (!all.ok()) return;
  }
  // With many others, each look at all of them takes its time.
  const auto pause = std::chrono::microseconds(500) * (1 + (*all)->size() / 64);
  while (true) {
    const bool moved = TalkOnce(**all);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (ends_ && leaving_.empty()) break;
      if (!moved) changed_.wait_for(lock, pause, [&] { return !leaving_.empty(); });
    }
  }
  if (is_clean_) {
    (*all)->Flush(kShareTag, Deadline::After(options_.patience)).IgnoreError();
  } else {
    // Its end would wait for those that are lost.
    all->release();
  }
}

bool Processes::TalkOnce(Communicator& all) {
  std::deque<std::pair<int, std::string>> leaving;
  std::vector<int> alive;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    leaving.swap(leaving_);
    const bool is_time = Clock::now() - beat_ >= options_.patience / 10;
    if (is_time) beat_ = Clock::now();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank_ || (rank_ != 0 && peer != 0) || !peers_[peer].lost.ok() || peers_[peer].is_done)
        continue;
      alive.push_back(peer);
      if (is_time) leaving.emplace_back(peer, "");
    }
  }
  std::vector<std::pair<int, absl::Status>> failed;
  for (const auto& [to, bytes] : leaving) {
    if (const absl::Status status = all.Post(to, kShareTag, bytes); !status.ok())
      failed.emplace_back(to, status);
  }
  bool moved = !leaving.empty();
  for (const int peer : alive) {
    absl::StatusOr<std::string> bytes;
    while ((bytes = all.Receive(peer, kShareTag, Deadline::Now())).ok()) {
      moved = true;
      const std::lock_guard<std::mutex> lock(mutex_);
      peers_[peer].heard = Clock::now();
      Handle(peer, *bytes);
      if (peers_[peer].is_done) break;
    }
    if (!bytes.ok() && !absl::IsDeadlineExceeded(bytes.status())) failed.emplace_back(peer, bytes.status());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [peer, status] : failed) Lose(peer, status);
  const bool is_ending = options_.is_ending != nullptr && options_.is_ending();
  for (const int peer : alive) {
    if (is_ending) Lose(peer, absl::UnavailableError("the launcher ended the job"));
    if (Clock::now() - peers_[peer].heard > options_.patience) {
      Lose(peer,
           absl::UnavailableError(absl::StrFormat("no sign of life for %.3g s",
                                                  std::chrono::duration<double>(options_.patience).count())));
    }
  }
  return moved;
}

void Processes::Post(int to, const google::protobuf::MessageLite& message) {
  leaving_.emplace_back(to, message.SerializeAsString());
  changed_.notify_all();
}

void Processes::Handle(int from, const std::string& bytes) {
  if (rank_ == 0) {
    bytes_arrived_ += static_cast<int64_t>(bytes.size());
    internal::ShareReply reply;
    if (!reply.ParseFromString(bytes)) return Lose(from, absl::InternalError("sent what is no reply"));
    return HandleReply(from, std::move(reply));
  }
  internal::ShareRequest request;
  if (!request.ParseFromString(bytes)) return Lose(from, absl::InternalError("sent what is no request"));
  if (request.done()) is_done_ = true;
  if (request.piece() > 0) requests_.push_back(std::move(request));
  changed_.notify_all();
}

void Processes::HandleReply(int from, internal::ShareReply reply) {
  Peer& peer = peers_[from];
  if (reply.done()) peer.is_done = true;
  if (reply.num_threads() > 0) peer.num_threads = reply.num_threads();
  if (reply.piece() > 0) {
    --peer.num_running;
    // Pieces of an earlier batch were given to others meanwhile.
    const int64_t piece = batch_ == nullptr ? -1 : reply.piece() - batch_->first_number;
    if (piece >= 0 && piece < static_cast<int64_t>(batch_->pieces->size()) && batch_->where[piece] == from) {
      const absl::Status status(static_cast<absl::StatusCode>(reply.code()), reply.error());
      if (absl::IsNotFound(status)) {
        PutBack(piece, from, status);
      } else if (!status.ok()) {
        SetResult(piece, status);
      } else {
        ++peer.num_pieces;
        SetResult(piece, std::move(*reply.mutable_result()));
      }
    }
  }
  if (batch_ != nullptr) GiveOut(from);
  changed_.notify_all();
}

std::string Processes::NameOf(int peer) const {
  return absl::StrCat("process ", peer, " (", hosts_[peer], ")");
}

void Processes::Lose(int lost, absl::Status why) {
  Peer& peer = peers_[lost];
  // Who has said that this process is done may be gone before it answers.
  if (!peer.lost.ok() || peer.is_done || is_done_) return;
  peer.lost = absl::UnavailableError(absl::StrCat(NameOf(lost), ": ", why.message()));
  is_clean_ = false;
  if (batch_ != nullptr) {
    const Batch& batch = *batch_;
    for (size_t piece = 0; piece < batch.pieces->size(); ++piece) {
      const bool waits = batch.where[piece] < 0 && !batch.results[piece];
      const std::vector<int>& who = batch.who[piece];
      if (batch.where[piece] == lost || (waits && std::find(who.begin(), who.end(), lost) != who.end()))
        PutBack(piece, lost, peer.lost);
    }
  }
  changed_.notify_all();
}

std::optional<size_t> Processes::Take(int process) {
  Batch& batch = *batch_;
  for (auto piece = batch.waiting.begin(); piece != batch.waiting.end(); ++piece) {
    const std::vector<int>& who = batch.who[*piece];
    if (std::find(who.begin(), who.end(), process) == who.end()) continue;
    const size_t taken = *piece;
    batch.waiting.erase(piece);
    batch.where[taken] = process;
    return taken;
  }
  return std::nullopt;
}

void Processes::GiveOut(int to) {
  Peer& peer = peers_[to];
  if (to == 0 || !peer.lost.ok() || peer.is_done) return;
  const int at_a_time = std::min(peer.num_threads, batch_->at_a_time);
  while (peer.num_running < at_a_time) {
    const std::optional<size_t> piece = Take(to);
    if (!piece) return;
    ++peer.num_running;
    internal::ShareRequest request;
    request.set_piece(batch_->first_number + static_cast<int64_t>(*piece));
    request.set_task(batch_->task->name);
    request.set_argument((*batch_->pieces)[*piece].argument);
    request.set_num_threads(peer.num_threads / at_a_time);
    Post(to, request);
  }
}

// Another process may have it; else its result is why this one has not, or that one which had it is lost.
void Processes::PutBack(size_t piece, int without, absl::Status why) {
  Batch& batch = *batch_;
  std::vector<int> others;
  for (const int process : batch.who[piece]) {
    if (!peers_[process].lost.ok()) {
      why = peers_[process].lost;
    } else if (process != without) {
      others.push_back(process);
    }
  }
  batch.who[piece] = others;
  const bool was_running = batch.where[piece] >= 0;
  batch.where[piece] = -1;
  if (others.empty()) {
    batch.waiting.erase(std::remove(batch.waiting.begin(), batch.waiting.end(), piece), batch.waiting.end());
    return SetResult(piece, std::move(why));
  }
  if (!was_running) return;
  batch.waiting.push_front(piece);
  for (const int process : others) GiveOut(process);
}

void Processes::SetResult(size_t piece, absl::StatusOr<std::string> result) {
  batch_->where[piece] = -1;
  batch_->results[piece] = std::move(result);
  ++batch_->num_results;
  changed_.notify_all();
}

void Processes::Work(Batch& batch, int num_threads) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (batch.num_results < batch.pieces->size()) {
    const std::optional<size_t> piece = Take(0);
    if (!piece) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    t_works = true;
    absl::StatusOr<std::string> result = batch.task->run((*batch.pieces)[*piece].argument, num_threads);
    t_works = false;
    lock.lock();
    SetResult(*piece, std::move(result));
  }
}

std::vector<absl::StatusOr<std::string>> Processes::RunAt(const ShareTask& task,
                                                          const std::vector<SharePiece>& pieces,
                                                          std::vector<std::vector<int>> who) {
  if (pieces.empty()) return {};
  // A piece is of files that its process has; it would wait for itself.
  if (t_works) return {pieces.size(), absl::FailedPreconditionError("asked for by another piece of work")};
  const std::lock_guard<std::mutex> one_at_a_time(run_mutex_);
  Batch batch;
  batch.task = &task;
  batch.pieces = &pieces;
  const int num_pieces = static_cast<int>(pieces.size());
  batch.at_a_time = (num_pieces + size() - 1) / size();
  batch.who = std::move(who);
  batch.where.assign(pieces.size(), -1);
  batch.results.resize(pieces.size());
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pieces[a].weight > pieces[b].weight; });
  batch.waiting.assign(order.begin(), order.end());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    batch.first_number = num_pieces_ + 1;
    num_pieces_ += num_pieces;
    batch_ = &batch;
    for (int peer = 1; peer < size(); ++peer) {
      // A process that was lost before does no pieces of this batch.
      if (peers_[peer].lost.ok()) continue;
      for (size_t piece = 0; piece < pieces.size(); ++piece) {
        const std::vector<int>& can = batch.who[piece];
        if (!batch.results[piece] && std::find(can.begin(), can.end(), peer) != can.end())
          PutBack(piece, peer, peers_[peer].lost);
      }
    }
    for (int peer = 1; peer < size(); ++peer) GiveOut(peer);
  }
  const int at_a_time = std::min(num_threads_, batch.at_a_time);
  OnThreads(at_a_time, [&] { Work(batch, num_threads_ / at_a_time); });
  const std::lock_guard<std::mutex> lock(mutex_);
  batch_ = nullptr;
  std::vector<absl::StatusOr<std::string>> results;
  for (std::optional<absl::StatusOr<std::string>>& result : batch.results)
    results.push_back(*std::move(result));
  return results;
}

// A path that exists here also exists for all processes that see the files of this one.
std::vector<int> Processes::WhoHas(const std::vector<std::string>& paths) const {
  std::vector<int> who;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int process = 0; process < size(); ++process) {
    const bool has_all = std::all_of(paths.begin(), paths.end(), [&](const std::string& path) {
      std::error_code error;
      if (std::filesystem::exists(path, error)) return process == 0 || peers_[process].sees_ours;
      const std::vector<int> owners = files_ == nullptr ? std::vector<int>() : files_->Owners(path);
      return std::find(owners.begin(), owners.end(), process) != owners.end();
    });
    if (has_all) who.push_back(process);
  }
  // It says what is missing.
  if (who.empty()) who.push_back(0);
  return who;
}

std::vector<absl::StatusOr<std::string>> Processes::Run(const ShareTask& task,
                                                        const std::vector<SharePiece>& pieces) {
  std::vector<std::vector<int>> who;
  for (const SharePiece& piece : pieces) who.push_back(WhoHas(piece.paths));
  return RunAt(task, pieces, std::move(who));
}

void Processes::FindFiles(const std::vector<std::string>& paths) {
  const internal::ListingRequest request = internal::AskForListing(paths);
  std::vector<SharePiece> pieces(size() - 1);
  std::vector<std::vector<int>> who;
  for (int peer = 1; peer < size(); ++peer) {
    pieces[peer - 1].argument = request.SerializeAsString();
    who.push_back({peer});
  }
  const std::vector<absl::StatusOr<std::string>> results = RunAt(kList, pieces, std::move(who));
  files_ = std::make_unique<internal::FarIndex>(
      [this](int process) { return hosts_[process]; },
      [this](const std::string& path, int64_t max_bytes) {
        internal::FileRequest file;
        file.set_path(path);
        file.set_max_bytes(max_bytes);
        return RunAt(kRead, {{file.SerializeAsString(), {}, 0}}, {files_->Owners(path)})[0];
      });
  for (int peer = 1; peer < size(); ++peer) {
    internal::Listing listing;
    if (!results[peer - 1].ok() || !listing.ParseFromString(*results[peer - 1])) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    peers_[peer].sees_ours = listing.is_same();
    files_->Add(peer, listing);
  }
  SetFarFiles(files_.get());
}

absl::Status Processes::Serve() {
  const auto work = [this] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !requests_.empty() || is_done_ || !peers_[0].lost.ok(); });
      if (requests_.empty()) return;
      const internal::ShareRequest request = std::move(requests_.front());
      requests_.pop_front();
      lock.unlock();
      const auto task = std::find_if(tasks_.begin(), tasks_.end(),
                                     [&](const ShareTask& known) { return known.name == request.task(); });
      absl::StatusOr<std::string> result = absl::UnimplementedError(
          absl::StrCat(request.task(), ": not known here; the processes are of different versions"));
      if (task != tasks_.end()) result = task->run(request.argument(), std::max(1, request.num_threads()));
      // The first process would wait without end for a result that cannot be sent.
      if (result.ok() && result->size() > kMostResultBytes) {
        result = absl::ResourceExhaustedError(absl::StrCat(
            request.task(), ": ", result->size(), " bytes, and processes send each other less than 2 GiB"));
      }
      internal::ShareReply reply;
      reply.set_piece(request.piece());
      reply.set_code(static_cast<int>(result.status().code()));
      if (result.ok()) {
        reply.set_result(*std::move(result));
      } else {
        reply.set_error(std::string(result.status().message()));
      }
      lock.lock();
      Post(0, reply);
    }
  };
  OnThreads(num_threads_, work);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!peers_[0].lost.ok()) return peers_[0].lost;
  internal::ShareReply goodbye;
  goodbye.set_done(true);
  Post(0, goodbye);
  return absl::OkStatus();
}

std::vector<std::string> Processes::Lost() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> lost;
  for (const Peer& peer : peers_) {
    if (!peer.lost.ok()) lost.emplace_back(peer.lost.message());
  }
  return lost;
}

std::string Processes::Describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::set<std::string> hosts(hosts_.begin(), hosts_.end());
  int64_t num_pieces = 0;
  for (const Peer& peer : peers_) num_pieces += peer.num_pieces;
  return absl::StrCat(size(), " processes on ", hosts.size(),
                      hosts.size() == 1 ? " host: " : " hosts: ", num_pieces, " of ", num_pieces_,
                      " pieces of work were done by others than the first, and ", bytes_arrived_,
                      " bytes came from them");
}

bool Processes::Finish() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto all_ended = [&] {
      return rank_ != 0 || std::all_of(peers_.begin() + std::min<size_t>(1, peers_.size()), peers_.end(),
                                       [](const Peer& peer) { return peer.is_done || !peer.lost.ok(); });
    };
    if (rank_ == 0 && !ends_) {
      internal::ShareRequest done;
      done.set_done(true);
      for (int peer = 1; peer < size(); ++peer) {
        if (peers_[peer].lost.ok() && !peers_[peer].is_done) Post(peer, done);
      }
    }
    changed_.wait(lock, all_ended);
    ends_ = true;
    changed_.notify_all();
  }
  talker_.Join();
  return is_clean_;
}

int NumProcesses() { return g_processes == nullptr ? 1 : g_processes->size(); }

void SetProcesses(Processes* processes) { g_processes = processes; }

std::vector<absl::StatusOr<std::string>> RunShared(const ShareTask& task,
                                                   const std::vector<SharePiece>& pieces) {
  if (g_processes != nullptr) return g_processes->Run(task, pieces);
  const int num_threads = NumThreads(0);
  const int at_a_time = std::max(1, std::min<int>(num_threads, static_cast<int>(pieces.size())));
  std::vector<absl::StatusOr<std::string>> results(pieces.size());
  ParallelFor(static_cast<int64_t>(pieces.size()), at_a_time,
              [&](int64_t i) { results[i] = task.run(pieces[i].argument, num_threads / at_a_time); });
  return results;
}

}  // namespace ott
